// An upstream without a network: the test plays the replicas.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/signal.h"
#include "upstream/event_reader.h"
#include "upstream/start_frame.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

class FakeUpstream final : public upstream::Upstream {
 public:
  struct Opened final : upstream::CallLink {
    std::string replica;
    v1::CallRequest request;
    upstream::Call* call = nullptr;  // null once released
    uint64_t granted = 0;
    bool cancelled = false;        // released before its end
    bool keeps_cancelled = false;  // until it acknowledges
    upstream::Held held;

    bool breaks = false;  // an exception where nobody expects one

    void grant(uint64_t /*call_id*/, uint64_t bytes) override {
      if (breaks) throw std::runtime_error("broken");
      granted += bytes;
    }
    void release(upstream::Call& released) override {
      cancelled = !released.is_over();
      if (cancelled && keeps_cancelled) held = released.take_held();
      call = nullptr;
    }

    // ---- what a replica does

    void chunk(const std::string& body, uint32_t events = 1) {
      v1::CallEvent event;
      if (!begun_) event.mutable_head()->set_content_type(content_type);
      if (!begun_) event.mutable_head()->MergeFrom(facts);
      if (!begun_) event.mutable_head()->set_status(200);
      begun_ = true;
      event.mutable_chunk()->set_body(body);
      event.mutable_chunk()->set_events(events);
      deliver(event);
    }
    void finish(const std::vector<std::string>& reasons = {"stop"}) {
      v1::CallEvent event;
      event.mutable_finished()->mutable_finish_reasons()->Assign(reasons.begin(), reasons.end());
      event.mutable_finished()->mutable_usage()->set_prompt_tokens(3);
      event.mutable_finished()->mutable_usage()->set_completion_tokens(2);
      event.mutable_finished()->set_adapter(adapter.value_or(request.adapter()));
      deliver(event);
    }
    // Its answer to the cancel.
    void acknowledge(uint32_t prompt_tokens, uint32_t completion_tokens) {
      const upstream::Usage usage{.prompt_tokens = prompt_tokens,
                                  .completion_tokens = completion_tokens};
      held.settle(usage, upstream::Held::Ended::kCutShort);
    }
    void fail(uint32_t status, const std::string& code, v1::Fault fault, v1::Retry retry) {
      v1::CallEvent event;
      v1::ErrorDetail& error = *event.mutable_failed()->mutable_error();
      error.set_status(status);
      error.set_type("server_error");
      error.set_code(code);
      error.set_message("the replica said " + code);
      error.set_fault(fault);
      error.set_retry(retry);
      deliver(event);
    }
    // Comes together with what comes next. True: its owner would be woken.
    bool put(v1::CallEvent& event) {
      begun_ = begun_ || event.has_head();
      const std::string bytes = event.SerializeAsString();
      upstream::CallEvent read;
      upstream::CallEvent::Rest rest;
      if (!upstream::read_event(bytes, read, rest)) read = upstream::event_of(event, rest);
      return call->deliver(read);
    }
    void lose(upstream::CallFailure::Source source) {
      upstream::CallFailure failure;
      failure.source = source;
      failure.error.set_status(502);
      failure.error.set_type("server_error");
      failure.error.set_code("upstream_error");
      failure.error.set_message("the connection ended");
      failure.error.set_fault(v1::FAULT_UPSTREAM);
      call->fail(std::move(failure));
      call->news().raise();
    }

    std::string content_type = "text/event-stream";
    v1::Head facts;                      // what its head says besides
    std::optional<std::string> adapter;  // that it says it used; none: what it was asked for

   private:
    void deliver(v1::CallEvent& event) {
      if (put(event)) call->news().raise();
    }
    bool begun_ = false;
  };

  std::unique_ptr<upstream::Call> open(const upstream::ReplicaAddress& replica,
                                       const upstream::CallRequest& request, runtime::Signal& news,
                                       upstream::SharedBody large) override {
    if (broken) throw std::runtime_error("the test broke the upstream");
    auto opened = std::make_shared<Opened>();
    opened->replica = replica.replica_id;
    opened->request = sent_as(request);
    if (large) opened->request.set_body(*large);
    auto call = std::make_unique<upstream::Call>(opened, calls.size() + 1, kCredit, news);
    if (request.token_groups) call->keep_groups();
    opened->call = call.get();
    calls.push_back(std::move(opened));
    return call;
  }

  // What a replica reads of it.
  static v1::CallRequest sent_as(const upstream::CallRequest& request) {
    std::string text;
    upstream::append_start(text, {.call_id = 1, .credit_bytes = 0, .request = request});
    v1::ClientFrame frame;
    EXPECT_TRUE(frame.ParseFromString(text));
    return frame.starts(0).request();
  }

  bool broken = false;  // throws, as nothing should
  static constexpr uint64_t kCredit = 100;
  std::deque<std::shared_ptr<Opened>> calls;  // in the order of opening
};

}  // namespace penstock::proxy
