#include "control_plane/route_subscription.h"

#include <utility>

#include "base/backoff.h"
#include "control_plane/snapshot_codec.h"
#include "control_plane/suspect_codec.h"
#include "control_plane/tenant_codec.h"
#include "penstock/v1/routes.grpc.pb.h"

namespace penstock::control_plane {

RouteSubscription::RouteSubscription(std::string gateway_id, HeadChannel head, SnapshotFile& file,
                                     const Followers& followers, const base::Clock& clock,
                                     base::Log& log)
    : gateway_id_(std::move(gateway_id)),
      head_(std::move(head)),
      file_(file),
      followers_(followers),
      clock_(clock),
      log_(log) {}

RouteSubscription::~RouteSubscription() { stop(); }

void RouteSubscription::start() {
  if (const auto kept = file_.load()) apply(*kept, RouteSource::kDisk);
  if (!head_) return;
  applying_ = std::thread([this] { apply_newest(); });
  watching_ = std::thread([this] { watch(); });
}

void RouteSubscription::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_all();
  if (watching_.joinable()) watching_.join();
  if (applying_.joinable()) applying_.join();
}

SubscriptionState RouteSubscription::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void RouteSubscription::watch() {
  base::Backoff backoff;
  do {
    if (watch_once()) backoff.reset();
  } while (wait(backoff.next()));
}

bool RouteSubscription::watch_once() {
  grpc::ClientContext context;
  head_.authorize(context);
  // Who waits for a connection looks for it; else gRPC does every five seconds.
  context.set_wait_for_ready(true);
  penstock::v1::WatchRoutesRequest request;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    call_ = &context;
    request.set_gateway_id(gateway_id_);
    request.set_have_version(state_.version);
    *request.mutable_stamp() = state_.stamp;
  }
  const auto stub = penstock::v1::Routes::NewStub(head_.channel);
  const auto reader = stub->Watch(&context, request);
  penstock::v1::RouteSnapshot snapshot;
  bool heard = false;
  while (reader->Read(&snapshot)) {
    if (!heard) log_.info("connected to the control plane", {{"version", snapshot.version()}});
    heard = true;
    const std::lock_guard lock(mutex_);
    hearing_ = true;
    newest_ = std::move(snapshot);
    changed_.notify_all();
  }
  note_end(reader->Finish(), heard);
  return heard;
}

// A head that is away is no news; one that refuses us is, once.
void RouteSubscription::note_end(const grpc::Status& status, bool heard) {
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  hearing_ = false;
  if (heard && !stopping_) {
    log_.warning("the control plane is away; the last routes stay in force",
                 {{"version", state_.version}, {"reason", status.error_message()}});
  }
  const bool away = status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE;
  const std::string refusal = heard || away || stopping_ ? "" : status.error_message();
  if (!refusal.empty() && refusal != refusal_) {
    log_.error("the control plane refuses this gateway", {{"reason", refusal}});
  }
  refusal_ = refusal;
  state_.connected = false;
}

void RouteSubscription::apply_newest() {
  for (;;) {
    penstock::v1::RouteSnapshot snapshot;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || newest_; });
      if (stopping_) return;
      snapshot = std::move(*newest_);
      newest_.reset();
    }
    consider(snapshot);
  }
}

void RouteSubscription::consider(const penstock::v1::RouteSnapshot& wire) {
  const SnapshotVerdict verdict = check_snapshot(accepted_, wire);
  if (verdict.kind == SnapshotVerdict::Kind::kRefuse) {
    if (!std::exchange(refusing_, true)) {
      log_.error("a route snapshot is refused; the routes in force stay",
                 {{"version", wire.version()}, {"reason", verdict.why}});
    }
    return;
  }
  refusing_ = false;
  if (verdict.kind == SnapshotVerdict::Kind::kAccept) {
    apply(wire, RouteSource::kControl);
    file_.save(wire);
    return;
  }
  followers_.suspects.merge(suspects_of(wire), clock_.wall_now());
  set_state(wire, RouteSource::kControl);
}

void RouteSubscription::apply(const penstock::v1::RouteSnapshot& wire, RouteSource source) {
  // Whoever finds a deployment in the routes finds its replicas, and its tenants' limits, too.
  const auto snapshot = from_proto(wire);
  const bool closed = followers_.without_keys == WithoutKeys::kRefused;
  followers_.tenants.replace(tenants_of(wire), wire.keys_required() || closed, clock_.steady_now());
  followers_.canaries.follow(snapshot);
  followers_.dispatchers.follow(snapshot);
  followers_.routes.replace(snapshot);
  followers_.dispatchers.close_left();
  followers_.suspects.merge(suspects_of(wire), clock_.wall_now());
  accepted_ = {.stamp = wire.stamp(), .version = wire.version()};
  set_state(wire, source);
  log_.info("routes replaced", {{"version", wire.version()},
                                {"source", source == RouteSource::kDisk ? "disk" : "control"},
                                {"deployments", wire.deployments_size()},
                                {"replicas", wire.replicas_size()}});
  followers_.replaced();
}

void RouteSubscription::set_state(const penstock::v1::RouteSnapshot& wire, RouteSource source) {
  const std::lock_guard lock(mutex_);
  state_.source = source;
  state_.version = wire.version();
  state_.stamp = wire.stamp();
  state_.connected = source == RouteSource::kControl && hearing_;
}

bool RouteSubscription::wait(std::chrono::milliseconds duration) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration, [this] { return stopping_; });
}

}  // namespace penstock::control_plane
