// What several native tests use: calls without a network, and where their answers go.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call.h"
#include "token_queue.h"

namespace penstock::replica::test {

// Collects what its calls have to say, on whatever thread says it.
class Recorder final : public Outlet {
 public:
  bool ready(const CallPtr& call) override {
    std::lock_guard lock(mutex_);
    v1::CallEvent event;
    while (call->answer.take(&event, TokenQueue::kCapacityBytes).anything) {
      body_ += event.chunk().body();
      sse_events_ += event.chunk().events();
      ended_ = ended_ || event.has_finished() || event.has_failed() || event.has_cancelled();
      events_.push_back(std::exchange(event, {}));
    }
    changed_.notify_all();
    return false;
  }
  void flush() override {}

  // The events of a call, once it has ended; fewer if it has not within ten seconds.
  std::vector<v1::CallEvent> await_end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return ended_; });
    return events_;
  }
  bool await_sse_events(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return sse_events_ >= count; });
  }
  size_t sse_events() {
    std::lock_guard lock(mutex_);
    return sse_events_;
  }
  std::string body() {
    std::lock_guard lock(mutex_);
    return body_;
  }
  bool ended() {
    std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::CallEvent> events_;
  std::string body_;
  size_t sse_events_ = 0;
  bool ended_ = false;
};

inline v1::CallRequest chat_request(std::string_view fields, std::string_view request_id = "test") {
  v1::CallRequest request;
  request.set_request_id(std::string(request_id));
  request.set_method("POST");
  request.set_path("/v1/chat/completions");
  request.set_model("m");
  std::string body = R"({"messages":[{"role":"user","content":"Hello"}])";
  if (!fields.empty()) body.append(",").append(fields);
  request.set_body(body + "}");
  return request;
}

struct Recorded {
  CallPtr call;
  std::shared_ptr<Recorder> recorder;
};

inline Recorded recorded_call(const v1::CallRequest& request) {
  static std::atomic<uint64_t> next_key{1};
  Recorded made{std::make_shared<Call>(next_key++, 0, 0), std::make_shared<Recorder>()};
  made.call->request = request;
  made.call->outlet = made.recorder;
  return made;
}

// News of one piece with this body.
inline News piece(std::string_view body) {
  News news;
  news.body = body;
  news.add_piece(body.size(), 1, 0);
  return news;
}

inline News finish() {
  News news;
  news.end.mutable_finished()->set_backend("test");
  return news;
}

}  // namespace penstock::replica::test
