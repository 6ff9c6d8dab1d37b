#include "control_plane/route_subscription.h"

#include <algorithm>
#include <utility>

#include "control_plane/snapshot_codec.h"
#include "penstock/v1/routes.grpc.pb.h"

namespace penstock::control_plane {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kMostBackoff{1000};
constexpr int kKeepaliveMs = 10'000;
constexpr int kLargestMessage = 64 << 20;  // a snapshot of 100,000 replicas

}  // namespace

std::shared_ptr<grpc::Channel> connect_to_head(const std::string& address) {
  if (address.empty()) return nullptr;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

RouteSubscription::RouteSubscription(std::string gateway_id, std::shared_ptr<grpc::Channel> channel,
                                     SnapshotFile& file, routing::RouteTable& table,
                                     const base::Clock& clock, base::Log& log)
    : gateway_id_(std::move(gateway_id)),
      channel_(std::move(channel)),
      file_(file),
      table_(table),
      clock_(clock),
      log_(log) {}

RouteSubscription::~RouteSubscription() { stop(); }

void RouteSubscription::start() {
  if (const auto kept = file_.load()) apply(*kept, RouteSource::kDisk);
  if (channel_) thread_ = std::thread([this] { run(); });
}

void RouteSubscription::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  stopping_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

SubscriptionState RouteSubscription::state() const {
  const std::lock_guard lock(mutex_);
  SubscriptionState state = state_;
  if (state.connected) state.last_connected = clock_.steady_now();
  return state;
}

void RouteSubscription::run() {
  milliseconds backoff = kFirstBackoff;
  do {
    backoff = watch_once() ? kFirstBackoff : std::min(backoff * 2, kMostBackoff);
  } while (wait(backoff));
}

bool RouteSubscription::watch_once() {
  grpc::ClientContext context;
  penstock::v1::WatchRoutesRequest request;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    call_ = &context;
    request.set_gateway_id(gateway_id_);
    request.set_have_version(state_.version);
  }
  const auto stub = penstock::v1::Routes::NewStub(channel_);
  const auto reader = stub->Watch(&context, request);
  penstock::v1::RouteSnapshot snapshot;
  bool heard = false;
  while (reader->Read(&snapshot)) {
    if (!heard) log_.info("connected to the control plane", {{"version", snapshot.version()}});
    heard = true;
    apply(snapshot, RouteSource::kControl);
  }
  const grpc::Status status = reader->Finish();
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  if (heard && !stopping_) {
    log_.warning("the control plane is away; the last routes stay in force",
                 {{"version", state_.version}, {"reason", status.error_message()}});
    state_.last_connected = clock_.steady_now();
  }
  state_.connected = false;
  return heard;
}

void RouteSubscription::apply(const penstock::v1::RouteSnapshot& wire, RouteSource source) {
  table_.replace(from_proto(wire));
  {
    const std::lock_guard lock(mutex_);
    state_.source = source;
    state_.version = wire.version();
    state_.connected = source == RouteSource::kControl;
  }
  log_.info("routes replaced", {{"version", wire.version()},
                                {"source", source == RouteSource::kDisk ? "disk" : "control"},
                                {"deployments", wire.deployments_size()},
                                {"replicas", wire.replicas_size()}});
  if (source == RouteSource::kControl) file_.save(wire);
}

bool RouteSubscription::wait(milliseconds duration) {
  std::unique_lock lock(mutex_);
  return !stopping_changed_.wait_for(lock, duration, [this] { return stopping_; });
}

}  // namespace penstock::control_plane
