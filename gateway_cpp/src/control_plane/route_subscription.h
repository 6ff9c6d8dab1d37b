// Keeps the route table equal to what the head says: Routes.Watch on a thread of its own, renewed
// with backoff (100 ms to 1 s), each snapshot swapped in whole and kept on disk. While the head is
// away the last snapshot stays in force. Owned by main; start() once, stop() or destroy to end.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "control_plane/snapshot_file.h"
#include "routing/route_table.h"

namespace penstock::control_plane {

// Where the routes in force came from.
enum class RouteSource : std::uint8_t { kNone, kDisk, kControl };

// For /readyz and metrics.
struct SubscriptionState {
  RouteSource source = RouteSource::kNone;
  bool connected = false;             // the stream to the head is open and has spoken
  std::uint64_t version = 0;          // of the snapshot in force
  base::SteadyTime last_connected{};  // end of the last connection, or now while connected
};

// A channel to the head with keepalive, so that silent network loss is seen within 20 s. Each call
// makes a connection of its own. An empty address: null.
std::shared_ptr<grpc::Channel> connect_to_head(const std::string& address);

class RouteSubscription {
 public:
  // `channel` null: there is no head, only the file.
  RouteSubscription(std::string gateway_id, std::shared_ptr<grpc::Channel> channel,
                    SnapshotFile& file, routing::RouteTable& table, const base::Clock& clock,
                    base::Log& log);
  RouteSubscription(const RouteSubscription&) = delete;
  RouteSubscription& operator=(const RouteSubscription&) = delete;
  ~RouteSubscription();

  // Loads the file at once, so that routes are there before the first request; then watches.
  void start();
  // Ends the watch and joins the thread. Idempotent.
  void stop();

  SubscriptionState state() const;  // any thread

 private:
  void run();
  bool watch_once();  // true if the stream brought at least one snapshot
  void apply(const penstock::v1::RouteSnapshot& wire, RouteSource source);
  bool wait(std::chrono::milliseconds duration);  // false if stopping

  const std::string gateway_id_;
  const std::shared_ptr<grpc::Channel> channel_;
  SnapshotFile& file_;
  routing::RouteTable& table_;
  const base::Clock& clock_;
  base::Log& log_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  grpc::ClientContext* call_ = nullptr;  // the watch in progress, for stop() to cancel
  SubscriptionState state_;
  std::thread thread_;
};

}  // namespace penstock::control_plane
