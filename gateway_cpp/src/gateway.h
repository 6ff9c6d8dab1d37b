// The gateway as a process: every object there is, and how they start, run and stop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "control_plane/deep_health.h"
#include "control_plane/report_client.h"
#include "control_plane/route_subscription.h"
#include "control_plane/snapshot_file.h"
#include "http/explain.h"
#include "http/io_thread.h"
#include "http/parts.h"
#include "http/programs.h"
#include "http/status_thread.h"
#include "http/tls_keeping.h"
#include "observe/tracer.h"
#include "tls/credentials.h"

namespace penstock {

// Every object there is, in the order in which they are built; stopped in the reverse order.
class Gateway {
 public:
  // `credentials`: null, and it speaks plain HTTP.
  Gateway(const base::GatewayConfig& config, const base::Address& address,
          std::shared_ptr<const tls::Credentials> credentials);

  // Empty: it listens; else why it cannot.
  std::string listen();
  void start();
  void wait_for_signal();
  void stop_accepting();
  // False: clients were still there when its time was over.
  bool wait_until_idle();
  void end_what_runs();
  void stop();
  // Whether requests were running when their time was over; after stop().
  bool cut_requests() const { return state_.requests_cut.load() > 0; }

 private:
  http::PortParts parts();
  void turn(std::chrono::milliseconds at_most);
  void on_signal();
  void on_hangup();
  void fill_report(v1::GatewayReport& report);
  void note_signal(int signal);
  void note_routes();  // that others are in force
  void limit_connections();
  void forget_metrics();  // of deployments that have left the routes
  base::Result<base::Address> serve_status();

  const base::GatewayConfig config_;
  const base::Address address_;
  const base::SystemClock clock_;
  base::Log log_;
  base::Metrics metrics_;
  routing::RouteTable routes_;
  dispatch::Dispatchers dispatchers_;
  admission::TenantTable tenants_;
  admission::UsageBook usage_;
  admission::CanaryBook canaries_{admission::CanaryBook::kSessions, [this] { reports_.hurry(); }};
  http::Programs programs_;
  runtime::GatewayState state_;
  http::WaitingRooms waiting_;
  admission::Suspects suspects_;
  runtime::BodyBudget bodies_, answers_, resume_bytes_;
  const http::MachineName machine_{http::own_machine_name(), http::full_machine_name};
  const http::Doors doors_, status_doors_;
  const std::string instance_;  // tells this process from those before it
  const uint64_t descriptors_;
  uint64_t limited_for_ = 0;  // the generation of routes that max_connections was set for
  control_plane::SnapshotFile snapshot_file_;
  const control_plane::HeadChannel head_;
  control_plane::DeepHealth deep_health_;
  http::Shadows shadows_;
  http::Explain explain_;
  observe::Tracer tracer_;
  observe::RecordSinks sinks_;
  control_plane::RouteSubscription subscription_;
  control_plane::ReportClient reports_;
  std::optional<http::TlsKeeping> tls_;
  std::deque<http::IoThread> threads_;
  runtime::SideThreads aside_{1 + config_.threads / 4};
  std::unique_ptr<http::StatusThread> status_;
  base::SteadyTime next_status_{};
  base::SteadyTime next_forget_{};
  boost::asio::io_context control_{1};  // of main's own thread
  boost::asio::signal_set signals_{control_, SIGTERM, SIGINT, SIGQUIT};
  boost::asio::signal_set hangups_{control_, SIGHUP};
  int interrupts_ = 0;
  int asked_ = 0;  // to drain: at 1 it listens on until another gateway does
  bool cut_short_ = false;
};

}  // namespace penstock
