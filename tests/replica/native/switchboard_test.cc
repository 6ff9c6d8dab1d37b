// Starts and cancels that meet: whatever their order, a call whose client is gone does not run.
#include "switchboard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support.h"

namespace penstock::replica {
namespace {

// Keeps the order in which one call was started and cancelled.
class Order final : public CallHandler {
 public:
  void start(std::span<const CallPtr> /*calls*/) override {
    if (on_start) on_start();
    if (cancels > 0) wrong = true;
    ++starts;
  }
  void cancel(const CallPtr& /*call*/) override {
    if (starts == 0) wrong = true;
    ++cancels;
  }
  void room(std::span<const CallPtr> /*calls*/) override {}

  std::function<void()> on_start;
  std::atomic<int> starts{0};
  std::atomic<int> cancels{0};
  std::atomic<bool> wrong{false};
};

class SwitchboardTest : public ::testing::Test {
 protected:
  SwitchboardTest() { switchboard_.set_state(v1::REPLICA_STATE_READY); }
  CallPtr make() { return switchboard_.make(1, 0, std::make_shared<testing::Recorder>()); }
  void start(const CallPtr& call) { switchboard_.start({&call, 1}); }

  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  Switchboard switchboard_{order_};
};

TEST_F(SwitchboardTest, ACallThatWasCancelledBeforeItsStartNeverRuns) {
  const CallPtr call = make();
  switchboard_.cancel(call);
  start(call);
  EXPECT_EQ(order_->starts, 0);
  EXPECT_EQ(switchboard_.running(), 0u);
}

TEST_F(SwitchboardTest, ACancelDuringTheStartIsToldAfterIt) {
  const CallPtr call = make();
  order_->on_start = [&] { switchboard_.cancel(call); };
  start(call);
  EXPECT_EQ(order_->starts, 1);
  EXPECT_EQ(order_->cancels, 1);
  EXPECT_FALSE(order_->wrong);
  EXPECT_EQ(switchboard_.running(), 0u);
}

TEST_F(SwitchboardTest, AFailureOfAllDuringAStartIsToldAfterIt) {
  const CallPtr call = make();
  order_->on_start = [&] { switchboard_.fail_all({}); };
  start(call);
  EXPECT_EQ(order_->cancels, 1);
  EXPECT_FALSE(order_->wrong);
}

TEST_F(SwitchboardTest, StartsAndCancelsOnTwoThreadsLeaveNothingRunning) {
  for (int round = 0; round < 2000; ++round) {
    order_->starts = 0;
    order_->cancels = 0;
    const CallPtr call = make();
    std::atomic<int> at_the_line{0};
    const auto meet = [&] {
      ++at_the_line;
      while (at_the_line < 2) std::this_thread::yield();
    };
    std::jthread starter([&] { meet(), start(call); });
    std::jthread canceller([&] { meet(), switchboard_.cancel(call); });
    starter.join();
    canceller.join();
    ASSERT_EQ(order_->starts, order_->cancels) << "round " << round;
    ASSERT_FALSE(order_->wrong) << "round " << round;
    ASSERT_EQ(switchboard_.running(), 0u) << "round " << round;
  }
}

TEST_F(SwitchboardTest, WhatTheEngineNeverGotMayBeTriedElsewhere) {
  const auto aboard = std::make_shared<testing::Recorder>();
  const auto outside = std::make_shared<testing::Recorder>();
  const CallPtr calls[] = {switchboard_.make(1, 0, aboard), switchboard_.make(2, 0, outside)};
  calls[0]->aboard = true;
  switchboard_.start(calls);
  v1::ErrorDetail error;
  error.set_code("engine_dead");
  error.set_retry(v1::RETRY_NEVER);
  switchboard_.fail_all(error);
  EXPECT_EQ(aboard->await_end().at(0).failed().error().retry(), v1::RETRY_NEVER);
  EXPECT_EQ(outside->await_end().at(0).failed().error().retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
}

}  // namespace
}  // namespace penstock::replica
