// The gateway process: builds every object, runs, drains.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>

#include "admission/suspects.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/metrics.h"
#include "control_plane/deployment_reports.h"
#include "control_plane/report_client.h"
#include "control_plane/route_subscription.h"
#include "control_plane/snapshot_file.h"
#include "control_plane/suspect_codec.h"
#include "http/io_thread.h"
#include "http/listen_socket.h"
#include "proxy/gateway_state.h"
#include "routing/least_loaded.h"
#include "routing/route_table.h"
#include "upstream/load_watch.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;

constexpr int kCutShort = 1;
constexpr int kBadFlags = 2;
constexpr int kPortTaken = 3;
constexpr milliseconds kTick{100};
constexpr milliseconds kDrainTick{10};

int say_error(const std::string& message, int exit_code) {
  std::cerr << "penstock-gateway: error: " << message << '\n';
  return exit_code;
}

// Every object there is, in the order in which they are built; stopped in the reverse order.
class Gateway {
 public:
  Gateway(const base::GatewayConfig& config, const base::Address& address);

  bool listen();  // false and errno: the address went to somebody else
  void start();
  void wait_for_signal();
  void stop_accepting();
  void wait_until_idle();
  void stop();

 private:
  void turn(milliseconds at_most);
  void on_signal();
  void fill_report(v1::GatewayReport& report);

  const base::GatewayConfig config_;
  const base::Address address_;
  const base::SystemClock clock_;
  base::Log log_;
  base::Metrics metrics_;
  routing::RouteTable routes_;
  const routing::LeastLoaded policy_;
  proxy::GatewayState state_;
  admission::Suspects suspects_;
  control_plane::SnapshotFile snapshot_file_;
  const control_plane::HeadChannel head_;
  control_plane::RouteSubscription subscription_;
  control_plane::ReportClient reports_;
  upstream::LoadWatch loads_;
  std::deque<http::IoThread> threads_;
  boost::asio::io_context control_{1};  // of main's own thread
  boost::asio::signal_set signals_{control_, SIGTERM, SIGINT};
  int signals_seen_ = 0;
};

Gateway::Gateway(const base::GatewayConfig& config, const base::Address& address)
    : config_(config),
      address_(address),
      log_(clock_, config_.log_level),
      suspects_(config_.id, config_.quarantine, [this] { reports_.hurry(); }),
      snapshot_file_(config_.data_dir, config_.id, log_),
      head_(
          control_plane::connect_to_head(config_.control, config_.cluster_token, config_.head_ca)),
      subscription_(config_.id, head_, snapshot_file_, routes_, suspects_, clock_, log_),
      reports_(config_.id, head_, clock_,
               [this](v1::GatewayReport& report) { fill_report(report); }),
      loads_(config_.id, config_.cluster_token, routes_, clock_, log_) {
  on_signal();
}

bool Gateway::listen() {
  const uint32_t connections = http::raise_descriptor_limit(config_.max_connections);
  const http::IoThread::Shared shared{.clock = clock_,
                                      .log = log_,
                                      .config = config_,
                                      .metrics = metrics_,
                                      .state = state_,
                                      .suspects = suspects_,
                                      .routes = routes_,
                                      .policy = policy_,
                                      .subscription = [this] { return subscription_.state(); }};
  for (unsigned i = 0; i < config_.threads; ++i) {
    const int socket = http::listen_on(address_);
    if (socket < 0) return false;
    threads_.emplace_back(shared, socket, connections);
  }
  return true;
}

void Gateway::start() {
  subscription_.start();
  loads_.tick();
  for (auto& thread : threads_) thread.start();
  reports_.start();
  log_.info("listening", {{"address", address_.text()},
                          {"pid", ::getpid()},
                          {"gateway_id", config_.id},
                          {"threads", config_.threads},
                          {"version", base::version()}});
}

void Gateway::on_signal() {
  signals_.async_wait([this](boost::system::error_code ec, int /*signal*/) {
    if (ec) return;
    if (++signals_seen_ > 1) ::_exit(kCutShort);
    on_signal();
  });
}

// One turn of main's own thread: a signal, or the slow tick.
void Gateway::turn(milliseconds at_most) {
  control_.run_one_for(at_most);
  loads_.tick();
}

void Gateway::wait_for_signal() {
  while (signals_seen_ == 0) turn(kTick);
}

void Gateway::stop_accepting() {
  log_.info("draining",
            {{"connections", state_.connections.load()}, {"deadline_ms", config_.drain.count()}});
  state_.draining.store(true);
  for (auto& thread : threads_) thread.drain();
}

void Gateway::wait_until_idle() {
  const auto deadline = clock_.steady_now() + config_.drain;
  // A client that was just taken is counted only after its thread has come to it.
  turn(kTick);
  while (state_.connections.load() > 0 && clock_.steady_now() < deadline) turn(kDrainTick);
}

void Gateway::stop() {
  log_.info("stopping", {{"connections_cut", state_.connections.load()}});
  for (auto& thread : threads_) thread.join();
  reports_.stop();
  subscription_.stop();
}

void Gateway::fill_report(v1::GatewayReport& report) {
  const auto routes = subscription_.state();
  report.set_snapshot_version(routes.version);
  *report.mutable_stamp() = routes.stamp;
  report.set_draining(state_.draining.load());
  report.set_bytes_sent(metrics_.bytes_sent());
  report.set_pid(static_cast<uint32_t>(::getpid()));
  report.set_connections(state_.connections.load());
  control_plane::add_suspects(suspects_.unshown(clock_.wall_now()), report);
  control_plane::add_deployments(metrics_.totals(), report);
}

int run(const base::GatewayConfig& config) {
  const auto address = http::claim_address(config.listen);
  if (!address) return say_error(address.error().message, kPortTaken);
  Gateway gateway(config, *address);
  if (!gateway.listen()) {
    return say_error("cannot listen on " + address->text() + ": " + std::strerror(errno),
                     kPortTaken);
  }
  gateway.start();
  gateway.wait_for_signal();
  gateway.stop_accepting();
  gateway.wait_until_idle();
  gateway.stop();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  std::signal(SIGPIPE, SIG_IGN);
  const auto config = base::parse_flags(argc, argv);
  if (!config) return say_error(config.error().message, kBadFlags);
  switch (config->action) {
    case base::Action::kHelp:
      std::cout << base::usage();
      return EXIT_SUCCESS;
    case base::Action::kVersion:
      std::cout << "penstock-gateway " << base::version() << '\n';
      return EXIT_SUCCESS;
    case base::Action::kRun:
      break;
  }
  return run(*config);
}
