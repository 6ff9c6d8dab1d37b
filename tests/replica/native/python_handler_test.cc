#include "python_handler.h"

#include <gtest/gtest.h>

#include "support.h"
#include "switchboard.h"

namespace penstock::replica {
namespace {

class PythonHandlerTest : public ::testing::Test {
 protected:
  PythonHandlerTest() { switchboard_.set_state(v1::REPLICA_STATE_READY); }
  CallPtr start(const v1::CallRequest& request) {
    CallPtr call = switchboard_.make(0, 0, recorder_);
    call->request = request;
    switchboard_.start({&call, 1});
    return call;
  }
  Delivered write(uint64_t key, std::string_view body) {
    Written written;
    written.key = key;
    written.body = body;
    written.events = 1;
    return write_many(&switchboard_, {&written, 1});
  }
  Delivered write(uint64_t key, const v1::CallEvent& event) {
    Written written;
    written.key = key;
    written.other = std::make_unique<v1::CallEvent>(event);
    return write_many(&switchboard_, {&written, 1});
  }

  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  Switchboard switchboard_{std::make_shared<PythonHandler>(inbox_)};
  std::shared_ptr<test::Recorder> recorder_ = std::make_shared<test::Recorder>();
};

TEST_F(PythonHandlerTest, ACallArrivesWithItsWholeRequest) {
  const v1::CallRequest request = test::chat_request(R"("max_tokens":1)");
  const CallPtr call = start(request);
  const auto items = inbox_->drain();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, Inbox::Kind::kStart);
  EXPECT_EQ(items[0].key, call->key);
  EXPECT_EQ(items[0].payload, request.SerializeAsString());
}

TEST_F(PythonHandlerTest, WhatIsWrittenReachesTheCall) {
  const CallPtr call = start({});
  v1::CallEvent head;
  head.mutable_head()->set_status(200);
  write(call->key, head);
  EXPECT_TRUE(write(call->key, "hello").full.empty());
  v1::CallEvent end;
  end.mutable_finished()->set_backend("test");
  EXPECT_TRUE(write(call->key, end).gone.empty());
  EXPECT_EQ(recorder_->body(), "hello");
  EXPECT_EQ(recorder_->await_end().front().head().status(), 200u);
}

TEST_F(PythonHandlerTest, CallsThatNobodyReadsAreNamed) {
  EXPECT_EQ(write(999, "nobody").gone, std::vector<uint64_t>{999});
  const CallPtr ended = start({});
  v1::CallEvent end;
  end.mutable_failed();
  write(ended->key, end);
  EXPECT_EQ(write(ended->key, "too late").gone, std::vector<uint64_t>{ended->key});
}

// Takes nothing, like a client without credit.
class Stuck final : public Outlet {
 public:
  bool ready(const CallPtr& /*call*/) override { return false; }
  void flush() override {}
};

TEST_F(PythonHandlerTest, AFullQueueIsNamed) {
  CallPtr call = switchboard_.make(0, 0, std::make_shared<Stuck>());
  switchboard_.start({&call, 1});
  EXPECT_TRUE(write(call->key, "small").full.empty());
  const std::string large(70 << 10, 'x');
  EXPECT_EQ(write(call->key, large).full, std::vector<uint64_t>{call->key});
}

TEST_F(PythonHandlerTest, ACancelIsToldOnceAndTheCallRunsUntilItsEndIsWritten) {
  const CallPtr call = start({});
  inbox_->drain();
  switchboard_.cancel(call);
  switchboard_.cancel(call);
  const auto items = inbox_->drain();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, Inbox::Kind::kCancel);
  EXPECT_EQ(switchboard_.running(), 1u);
  EXPECT_EQ(write(call->key, "late").gone, std::vector<uint64_t>{call->key});
  v1::CallEvent end;
  end.mutable_cancelled()->mutable_usage()->set_completion_tokens(7);
  write(call->key, end);
  const auto events = recorder_->await_end();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].cancelled().usage().completion_tokens(), 7u);
}

TEST_F(PythonHandlerTest, ACallWhoseClientIsGoneIsCancelledAndForgotten) {
  const CallPtr call = start({});
  inbox_->drain();
  switchboard_.cancel(call);
  switchboard_.abandon(call);
  EXPECT_EQ(inbox_->drain().size(), 1u) << "told once";
  EXPECT_EQ(switchboard_.running(), 0u);
}

TEST_F(PythonHandlerTest, FailAllEndsEveryCallAndTellsPython) {
  const CallPtr call = start({});
  inbox_->drain();
  v1::ErrorDetail error;
  error.set_code("engine_dead");
  switchboard_.fail_all(error);
  EXPECT_EQ(recorder_->await_end().at(0).failed().error().code(), "engine_dead");
  EXPECT_EQ(inbox_->drain().at(0).kind, Inbox::Kind::kCancel);
}

TEST_F(PythonHandlerTest, AReplicaThatIsNotReadyRefusesCallsAsRetryable) {
  for (const auto& [state, code] : {std::pair{v1::REPLICA_STATE_STARTING, "model_loading"},
                                    std::pair{v1::REPLICA_STATE_DRAINING, "draining"}}) {
    recorder_ = std::make_shared<test::Recorder>();
    switchboard_.set_state(state);
    start({});
    const v1::ErrorDetail error = recorder_->await_end().at(0).failed().error();
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
  }
  EXPECT_TRUE(inbox_->drain().empty());
}

}  // namespace
}  // namespace penstock::replica
