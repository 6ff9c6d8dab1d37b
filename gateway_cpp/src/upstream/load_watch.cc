#include "upstream/load_watch.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "penstock/v1/inference.grpc.pb.h"
#include "upstream/channel.h"
#include "upstream/tsan.h"

namespace penstock::upstream {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLastBackoff{1'000};
constexpr milliseconds kDoubt{2'000};    // how long an ended stream speaks against the replica
constexpr milliseconds kSilence{5'000};  // messages are due each second

}  // namespace

// One WatchLoad call, whose callbacks run on gRPC's threads. It dies only on the owner's thread and
// only once it is over: with it may go the last channel of the process, for which gRPC joins those
// threads.
class LoadWatch::Stream final : public grpc::ClientReadReactor<v1::Load> {
 public:
  Stream(std::shared_ptr<routing::ReplicaTracker> tracker, const base::Clock& clock)
      : tracker_(std::move(tracker)), clock_(clock) {
    note_time();
  }

  static std::unique_ptr<Stream> start(const std::string& watcher_id, const std::string& token,
                                       const std::string& address, const std::string& purpose,
                                       std::shared_ptr<routing::ReplicaTracker> tracker,
                                       const base::Clock& clock) {
    auto stream = std::make_unique<Stream>(std::move(tracker), clock);
    stream->stub_ = v1::Inference::NewStub(connect_to_replica(address, purpose));
    stream->request_.set_watcher_id(watcher_id);
    if (!token.empty()) stream->context_.AddMetadata("authorization", "Bearer " + token);
    stream->stub_->async()->WatchLoad(&stream->context_, &stream->request_, stream.get());
    stream->StartRead(&stream->load_);
    PENSTOCK_TSAN_GIVES(stream.get());
    stream->StartCall();
    return stream;
  }

  void cancel() { context_.TryCancel(); }
  bool over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  bool heard() const { return heard_.load(std::memory_order_relaxed); }
  bool silent(base::SteadyTime now) const {
    const base::SteadyTime last{base::SteadyTime::duration(last_.load(std::memory_order_relaxed))};
    return now - last > kSilence;
  }
  void wait_over() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
  }

 private:
  void OnReadDone(bool ok) override {
    PENSTOCK_TSAN_TAKES(this);
    if (!ok) return;
    note_time();
    if (!heard_.exchange(true, std::memory_order_relaxed)) tracker_->mark_up();
    tracker_->report(load_.running(), load_.waiting());
    tracker_->set_serving(load_.state() == v1::REPLICA_STATE_READY
                              ? routing::ReplicaTracker::Serving::kYes
                              : routing::ReplicaTracker::Serving::kNo);
    PENSTOCK_TSAN_GIVES(this);
    StartRead(&load_);
  }

  void OnDone(const grpc::Status& status) override {
    PENSTOCK_TSAN_TAKES(this);
    // A replica without the rpc is not dead, and a watch that we ended says nothing.
    const auto code = status.error_code();
    if (code != grpc::StatusCode::UNIMPLEMENTED && code != grpc::StatusCode::CANCELLED) {
      tracker_->mark_down(clock_.steady_now() + kDoubt);
    }
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  void note_time() {
    last_.store(clock_.steady_now().time_since_epoch().count(), std::memory_order_relaxed);
  }

  const std::shared_ptr<routing::ReplicaTracker> tracker_;
  const base::Clock& clock_;
  std::unique_ptr<v1::Inference::Stub> stub_;
  grpc::ClientContext context_;
  v1::WatchLoadRequest request_;
  v1::Load load_;
  std::atomic<int64_t> last_{0};  // steady clock, when anything was last heard
  std::atomic<bool> heard_{false};
  mutable std::mutex mutex_;  // guards over_
  std::condition_variable changed_;
  bool over_ = false;
};

LoadWatch::LoadWatch(std::string watcher_id, std::string token, const routing::RouteTable& table,
                     const base::Clock& clock, base::Log& log)
    : watcher_id_(std::move(watcher_id)),
      token_(std::move(token)),
      table_(table),
      clock_(clock),
      log_(log) {}

LoadWatch::~LoadWatch() {
  for (auto& [key, watched] : watched_) {
    if (watched.stream) watched.stream->cancel();
  }
  for (auto& [key, watched] : watched_) {
    if (watched.stream) watched.stream->wait_over();
  }
  for (const auto& stream : ending_) stream->wait_over();
}

void LoadWatch::tick() {
  if (const auto generation = table_.generation(); generation != generation_) {
    generation_ = generation;
    follow_routes();
  }
  std::erase_if(ending_, [](const auto& stream) { return stream->over(); });
  const auto now = clock_.steady_now();
  for (auto& [key, watched] : watched_) {
    if (!watched.stream || watched.stream->over()) {
      renew(key, watched, now);
    } else if (watched.stream->silent(now)) {
      watched.tracker->mark_down(now + kDoubt);
      watched.stream->cancel();
    }
  }
}

void LoadWatch::follow_routes() {
  const auto routes = table_.current();
  std::map<Key, Watched> still;
  for (const auto& [name, deployment] : routes->deployments()) {
    for (const auto& target : deployment->replicas) {
      if (target.route.address.empty()) continue;
      Key key{target.route.id.value, target.route.address};
      const auto found = watched_.find(key);
      Watched watched = found == watched_.end() ? Watched{} : std::move(found->second);
      watched.tracker = target.tracker;
      still.emplace(std::move(key), std::move(watched));
    }
  }
  for (auto& [key, watched] : watched_) {
    if (!watched.stream) continue;  // moved on, or never started
    watched.stream->cancel();
    ending_.push_back(std::move(watched.stream));
  }
  watched_ = std::move(still);
}

void LoadWatch::renew(const Key& key, Watched& watched, base::SteadyTime now) {
  if (now < watched.next_start) return;
  if (watched.stream && watched.stream->heard()) {
    watched.backoff = milliseconds(0);
    log_.warning("replica's load stream ended",
                 {{"replica_id", key.first}, {"address", key.second}});
  }
  watched.backoff = std::clamp(watched.backoff * 2, kFirstBackoff, kLastBackoff);
  watched.next_start = now + watched.backoff;
  watched.stream = Stream::start(watcher_id_, token_, key.second,
                                 "load-" + std::to_string(++channels_), watched.tracker, clock_);
}

}  // namespace penstock::upstream
