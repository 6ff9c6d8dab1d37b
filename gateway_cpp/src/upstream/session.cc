#include "upstream/session.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "penstock/v1/inference.grpc.pb.h"
#include "upstream/tsan.h"

namespace penstock::upstream {

// A message with its memory, used again for later reads.
struct Session::Frame {
  v1::ServerFrame message;
  int reads = 0;
};

// The gRPC side, whose callbacks run on gRPC's threads. It dies only on the I/O thread and only
// once it is over: with it may go the last channel of the process, for which gRPC joins those
// threads.
class Session::Stream final : public grpc::ClientBidiReactor<v1::ClientFrame, v1::ServerFrame> {
 public:
  Stream(asio::io_context& io, std::weak_ptr<Session> session)
      : io_(&io), session_(std::move(session)) {}

  void start(const std::shared_ptr<grpc::ChannelInterface>& channel) {
    stub_ = v1::Inference::NewStub(channel);
    stub_->async()->Session(&context_, this);
    // Reads and writes are started from outside of callbacks too.
    AddHold();
    reading_ = fresh_frame();
    StartRead(&reading_->message);
    PENSTOCK_TSAN_GIVES(this);
    StartCall();
  }

  // ---- I/O thread

  // Adds to the frame that goes out next.
  template <class Add>
  void add(Add&& add) {
    const std::lock_guard lock(mutex_);
    std::forward<Add>(add)(*outgoing_);
    outgoing_empty_ = false;
  }

  void flush() {
    const std::lock_guard lock(mutex_);
    flush_locked();
  }

  // Hands over what came, and whether it was the last. Reading goes on.
  bool collect(std::vector<std::unique_ptr<Frame>>& frames) {
    v1::ServerFrame* next = nullptr;
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      posted_ = false;
      frames.swap(waiting_);
      over = over_;
      if (std::exchange(paused_, false)) next = &reading_->message;
    }
    if (next != nullptr) {
      PENSTOCK_TSAN_GIVES(this);
      StartRead(next);
    }
    return over;
  }

  void recycle(std::vector<std::unique_ptr<Frame>>& frames) {
    const std::lock_guard lock(mutex_);
    for (auto& frame : frames) {
      // Slots keep the memory of the largest event they held: not for ever.
      if (idle_.size() < kMaxWaiting && ++frame->reads < kReadsPerFrame) {
        idle_.push_back(std::move(frame));
      }
    }
    frames.clear();
  }

  void cancel() { context_.TryCancel(); }

  // No more posts to the I/O thread; returns when gRPC has let go.
  void abandon() {
    std::unique_lock lock(mutex_);
    io_ = nullptr;
    if (over_) return;
    lock.unlock();
    context_.TryCancel();
    lock.lock();
    if (std::exchange(paused_, false)) {
      // Somebody has to see the end of the reads.
      PENSTOCK_TSAN_GIVES(this);
      StartRead(&reading_->message);
    }
    over_changed_.wait(lock, [this] { return over_; });
  }

 private:
  static constexpr size_t kMaxWaiting = 8;  // frames; more are left to gRPC's flow control
  static constexpr int kReadsPerFrame = 256;
  static constexpr size_t kKeptRequestBytes = 64UL * 1024;

  void OnReadDone(bool ok) override {
    PENSTOCK_TSAN_TAKES(this);
    if (!ok) {
      {
        const std::lock_guard lock(mutex_);
        writable_ = false;
      }
      RemoveHold();
      return;
    }
    v1::ServerFrame* next = nullptr;
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(reading_));
      reading_ = fresh_frame();
      paused_ = waiting_.size() >= kMaxWaiting && io_ != nullptr;
      if (!paused_) next = &reading_->message;
      post_locked();
    }
    if (next != nullptr) {
      PENSTOCK_TSAN_GIVES(this);
      StartRead(next);
    }
  }

  void OnWriteDone(bool ok) override {
    PENSTOCK_TSAN_TAKES(this);
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (in_flight_->ByteSizeLong() > kKeptRequestBytes) {
      in_flight_ = std::make_unique<v1::ClientFrame>();
    } else {
      in_flight_->Clear();
    }
    if (ok) flush_locked();
  }

  void OnDone(const grpc::Status&) override {
    PENSTOCK_TSAN_TAKES(this);
    const std::lock_guard lock(mutex_);
    over_ = true;
    post_locked();
    over_changed_.notify_all();
  }

  // Under the lock, so that abandon() is never passed by a post.
  void post_locked() {
    if (io_ == nullptr || std::exchange(posted_, true)) return;
    asio::post(*io_, [session = session_] {
      if (const auto alive = session.lock()) alive->drain();
    });
  }

  void flush_locked() {
    if (writing_ || outgoing_empty_ || !writable_) return;
    std::swap(outgoing_, in_flight_);
    outgoing_empty_ = true;
    writing_ = true;
    PENSTOCK_TSAN_GIVES(this);
    StartWrite(in_flight_.get());
  }

  std::unique_ptr<Frame> fresh_frame() {
    if (idle_.empty()) return std::make_unique<Frame>();
    auto frame = std::move(idle_.back());
    idle_.pop_back();
    return frame;
  }

  std::unique_ptr<v1::Inference::Stub> stub_;
  grpc::ClientContext context_;

  std::mutex mutex_;  // guards all below
  std::condition_variable over_changed_;
  asio::io_context* io_;  // null once abandoned
  std::weak_ptr<Session> session_;
  std::unique_ptr<Frame> reading_;
  std::vector<std::unique_ptr<Frame>> waiting_;
  std::vector<std::unique_ptr<Frame>> idle_;
  std::unique_ptr<v1::ClientFrame> outgoing_ = std::make_unique<v1::ClientFrame>();
  std::unique_ptr<v1::ClientFrame> in_flight_ = std::make_unique<v1::ClientFrame>();
  bool outgoing_empty_ = true;
  bool writing_ = false;
  bool writable_ = true;
  bool posted_ = false;
  bool paused_ = false;  // the next read is started by whoever takes the waiting frames
  bool over_ = false;
};

std::shared_ptr<Session> Session::start(asio::io_context& io,
                                        const std::shared_ptr<grpc::Channel>& channel,
                                        std::string replica_id, uint64_t credit_bytes) {
  std::shared_ptr<Session> session(new Session(io, std::move(replica_id), credit_bytes));
  session->stream_ = std::make_unique<Stream>(io, session);
  session->stream_->start(channel);
  return session;
}

Session::Session(asio::io_context& io, std::string replica_id, uint64_t credit_bytes)
    : io_(io), replica_id_(std::move(replica_id)), credit_bytes_(credit_bytes) {}

Session::~Session() { stream_->abandon(); }

std::unique_ptr<Call> Session::open(v1::CallRequest request, Signal& news) {
  const uint64_t id = ++last_id_;
  auto call = std::make_unique<Call>(shared_from_this(), id, credit_bytes_, news);
  if (ended_) {
    call->fail(connection_failure());
    news.raise();
    return call;
  }
  calls_.emplace(id, call.get());
  stream_->add([&](v1::ClientFrame& frame) {
    v1::Start& start = *frame.add_starts();
    start.set_call_id(id);
    start.set_initial_credit_bytes(credit_bytes_);
    *start.mutable_request() = std::move(request);
  });
  flush_later();
  return call;
}

void Session::close() { stream_->cancel(); }

void Session::grant(uint64_t call_id, uint64_t bytes) {
  if (ended_) return;
  stream_->add([&](v1::ClientFrame& frame) {
    v1::Credit& credit = *frame.add_credits();
    credit.set_call_id(call_id);
    credit.set_bytes(bytes);
  });
  flush_later();
}

void Session::release(Call& call) {
  if (call.listed) {
    for (Call*& listed : to_wake_) {
      if (listed == &call) listed = nullptr;
    }
  }
  if (calls_.erase(call.id()) == 0 || ended_) return;
  stream_->add([&](v1::ClientFrame& frame) { frame.add_cancels(call.id()); });
  flush_later();
}

void Session::drain() {
  const bool over = stream_->collect(frames_);
  for (const auto& frame : frames_) deliver(frame->message);
  heard_ = heard_ || !frames_.empty();
  stream_->recycle(frames_);
  if (over) fail_all();
  wake_listed();
}

void Session::deliver(v1::ServerFrame& frame) {
  for (v1::CallEvent& event : *frame.mutable_events()) {
    const auto found = calls_.find(event.call_id());
    if (found == calls_.end()) continue;  // cancelled here while it was on its way
    Call& call = *found->second;
    call.deliver(event);
    if (call.ended()) calls_.erase(found);
    list(call);
  }
}

void Session::fail_all() {
  ended_ = true;
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    call->fail(connection_failure());
    list(*call);
  }
}

void Session::list(Call& call) {
  if (std::exchange(call.listed, true)) return;
  to_wake_.push_back(&call);
}

// A woken request may open and release calls, its own listed one included.
void Session::wake_listed() {
  for (size_t i = 0; i < to_wake_.size(); ++i) {
    if (to_wake_[i] == nullptr) continue;
    to_wake_[i]->listed = false;
    to_wake_[i]->news().raise();
  }
  to_wake_.clear();
}

// Everything that one turn of the I/O thread has to say goes out in one frame.
void Session::flush_later() {
  if (std::exchange(flush_posted_, true)) return;
  asio::post(io_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->stream_->flush();
  });
}

CallFailure Session::connection_failure() const {
  CallFailure failure;
  failure.source = heard_ ? CallFailure::Source::kLost : CallFailure::Source::kUnreachable;
  v1::ErrorDetail& error = failure.error;
  error.set_status(502);
  error.set_type("server_error");
  error.set_code("upstream_error");
  error.set_message(heard_ ? "The connection to replica " + replica_id_ +
                                 " ended before the answer was complete. Send the request again."
                           : "Replica " + replica_id_ +
                                 " cannot be reached. Send the request again in a moment.");
  error.set_fault(v1::FAULT_UPSTREAM);
  error.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  return failure;
}

}  // namespace penstock::upstream
