// Keeps the route table equal to what the head says: Routes.Watch on a thread of its own, renewed
// with backoff (100 ms to 1 s). A second thread swaps the newest snapshot in whole and keeps it on
// disk: where several came in the meantime, only the last counts. One that is older than the one in
// force, or of another cluster, changes nothing. While the head is away the last snapshot stays in
// force. Owned by main; start() once, stop() or destroy to end.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "admission/canary_book.h"
#include "admission/suspects.h"
#include "admission/tenants.h"
#include "base/clock.h"
#include "base/log.h"
#include "control_plane/head_channel.h"
#include "control_plane/snapshot_file.h"
#include "control_plane/snapshot_guard.h"
#include "dispatch/dispatchers.h"
#include "routing/route_table.h"

namespace penstock::control_plane {

// Where the routes in force came from.
enum class RouteSource : std::uint8_t { kNone, kDisk, kControl };

// For /readyz and metrics.
struct SubscriptionState {
  RouteSource source = RouteSource::kNone;
  bool connected = false;            // the stream to the head is open and has spoken
  std::uint64_t version = 0;         // of the snapshot in force
  penstock::v1::ClusterStamp stamp;  // of that snapshot
};

// Whether a request without a key is served while no key has ever been made.
enum class WithoutKeys : std::uint8_t { kServed, kRefused };

// What a snapshot changes. All outlive the subscription.
struct Followers {
  routing::RouteTable& routes;
  dispatch::Dispatchers& dispatchers;
  admission::TenantTable& tenants;
  admission::Suspects& suspects;
  admission::CanaryBook& canaries;
  WithoutKeys without_keys = WithoutKeys::kServed;
  // Called on the applying thread once others are in force.
  std::function<void()> replaced = [] {};
};

class RouteSubscription {
 public:
  // Without a head there is only the file.
  RouteSubscription(std::string gateway_id, HeadChannel head, SnapshotFile& file,
                    const Followers& followers, const base::Clock& clock, base::Log& log);
  RouteSubscription(const RouteSubscription&) = delete;
  RouteSubscription& operator=(const RouteSubscription&) = delete;
  ~RouteSubscription();

  // Loads the file at once, so that routes are there before the first request; then watches.
  void start();
  // Ends the watch and joins the threads. Idempotent.
  void stop();

  SubscriptionState state() const;  // any thread

 private:
  void watch();
  bool watch_once();  // true if the stream brought at least one snapshot
  void note_end(const grpc::Status& status, bool heard);
  void apply_newest();
  void consider(const penstock::v1::RouteSnapshot& wire);
  void apply(const penstock::v1::RouteSnapshot& wire, RouteSource source);
  void set_state(const penstock::v1::RouteSnapshot& wire, RouteSource source);
  bool wait(std::chrono::milliseconds duration);  // false if stopping

  const std::string gateway_id_;
  const HeadChannel head_;
  SnapshotFile& file_;
  const Followers followers_;
  const base::Clock& clock_;
  base::Log& log_;

  AcceptedSnapshot accepted_;  // used by start(), then by the applying thread alone
  bool refusing_ = false;      // the same; the last snapshot was refused, and that was told

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<penstock::v1::RouteSnapshot> newest_;  // heard and not applied yet
  grpc::ClientContext* call_ = nullptr;  // the watch in progress, for stop() to cancel
  bool hearing_ = false;                 // it has brought a snapshot, and has not ended
  std::string refusal_;                  // why the head would not have us, as told last
  SubscriptionState state_;
  std::thread watching_;
  std::thread applying_;
};

}  // namespace penstock::control_plane
