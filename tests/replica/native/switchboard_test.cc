// Starts and cancels that meet: whatever their order, a call whose client is gone does not run.
#include "switchboard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <tuple>

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
  CallPtr make() { return switchboard_.make(1, 0, std::make_shared<test::Recorder>()); }
  void start(const CallPtr& call) { switchboard_.start({&call, 1}); }

  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  Switchboard switchboard_{order_};
};

TEST_F(SwitchboardTest, ACallThatWasCancelledBeforeItsStartNeverRuns) {
  const CallPtr call = make();
  switchboard_.abandon(call);
  start(call);
  EXPECT_EQ(order_->starts, 0);
  EXPECT_EQ(switchboard_.running(), 0u);
}

TEST_F(SwitchboardTest, ACancelDuringTheStartIsToldAfterIt) {
  const CallPtr call = make();
  order_->on_start = [&] { switchboard_.abandon(call); };
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
    std::jthread canceller([&] { meet(), switchboard_.abandon(call); });
    starter.join();
    canceller.join();
    ASSERT_EQ(order_->starts, order_->cancels) << "round " << round;
    ASSERT_FALSE(order_->wrong) << "round " << round;
    ASSERT_EQ(switchboard_.running(), 0u) << "round " << round;
  }
}

TEST_F(SwitchboardTest, ACallThatWasCancelledBeforeItsStartCostsNothing) {
  const auto recorder = std::make_shared<test::Recorder>();
  const CallPtr call = switchboard_.make(1, 0, recorder);
  switchboard_.cancel(call);
  start(call);
  EXPECT_EQ(order_->starts, 0);
  EXPECT_TRUE(recorder->await_end().at(0).has_cancelled());
}

TEST_F(SwitchboardTest, CallsAreCountedForWhoeverIsTold) {
  const auto ours = switchboard_.gateway("a");
  const auto theirs = switchboard_.gateway("b");
  EXPECT_EQ(switchboard_.gateway("a"), ours);
  EXPECT_NE(switchboard_.gateway(""), switchboard_.gateway("")) << "each one of its own";
  const auto tell = [&](const Gateway* to) {
    v1::Load load;
    switchboard_.tell_calls(to, &load);
    return std::tuple(load.calls(), load.calls_elsewhere(), load.gateways());
  };
  EXPECT_EQ(tell(ours.get()), std::tuple(0u, 0u, 1u)) << "who is told counts";
  const auto outlet = std::make_shared<test::Recorder>();
  const CallPtr first = switchboard_.make(1, 0, outlet, ours);
  const CallPtr second = switchboard_.make(2, 0, outlet, theirs);
  const CallPtr tools = switchboard_.make(0, 0, outlet);
  for (const CallPtr& call : {first, second, tools}) start(call);
  EXPECT_EQ(tell(ours.get()), std::tuple(3u, 2u, 2u));
  EXPECT_EQ(tell(nullptr), std::tuple(3u, 3u, 2u));
  const CallPtr ended[] = {first, switchboard_.make(3, 0, outlet, ours)};
  switchboard_.ended(ended);
  EXPECT_EQ(tell(ours.get()), std::tuple(2u, 2u, 2u)) << "the other one never began";
  switchboard_.ended({&second, 1});
  switchboard_.abandon(tools);
  EXPECT_EQ(tell(ours.get()), std::tuple(0u, 0u, 2u)) << "it had calls just now";
}

TEST_F(SwitchboardTest, WhatTheEngineNeverGotMayBeTriedElsewhere) {
  const auto aboard = std::make_shared<test::Recorder>();
  const auto outside = std::make_shared<test::Recorder>();
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
