// A deployment that has begun to send requests elsewhere for the wait goes on with it until the
// wait is clearly shorter, so that it does not change its mind with every answer.
#include <gtest/gtest.h>

#include <deque>

#include "believed_routes.h"
#include "dispatch/dispatcher.h"
#include "fixed_clock.h"
#include "routing/snapshots.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SilentWaker final : public Waker {
 public:
  void wake() override {}
};

class HysteresisTest : public testing::Test {
 protected:
  struct Asking {
    Asking() { ask.estimate = {.prompt = 100, .completion = 100}; }
    PlaceRequest ask;
    Turn turn;
    Place place;
  };

  HysteresisTest() {
    limits_.max_ongoing = 1;
    limits_.wait_budget = milliseconds(10'500);
    routes_.replace({.version = 1,
                     .deployments = {routing::deployment("mini", {}, limits_)},
                     .replicas = {routing::replica("r1", "mini")}});
    // It is known that a call takes a second.
    for (int i = 0; i < 60; ++i) {
      ask(true);
      clock_.advance(seconds(1));
      end_one();
    }
  }

  Dispatcher& mini() { return routes_.of("mini"); }
  // Whether it may wait, or run.
  bool ask(bool has_rung, base::Priority priority = base::Priority::kNormal) {
    Asking& asking = asked_.emplace_back();
    asking.ask.priority = priority;
    const admission::DeploymentAsk wanted{
        .deployment = "mini", .priority = priority, .limits = limits_, .has_rung = has_rung};
    const auto outcome = mini().admit(asking.turn, asking.ask, wanted,
                                      [] { return std::make_shared<SilentWaker>(); });
    if (outcome.refusal) {
      EXPECT_EQ(outcome.refusal->reason, admission::DropReason::kWaitExceeded);
      mini().answered_elsewhere(asking.ask);
      asked_.pop_back();
      return false;
    }
    take_places();
    return true;
  }
  void take_places() {
    for (Asking& asking : asked_) {
      if (asking.turn.has_place()) asking.place = asking.turn.take();
    }
  }
  // The one that runs is answered.
  void end_one() {
    asked_.pop_front();
    take_places();
  }

  test::FixedClock clock_;
  routing::Limits limits_;
  BelievedRoutes routes_{clock_};
  std::deque<Asking> asked_;
};

TEST_F(HysteresisTest, SendsElsewhereUntilTheWaitIsBelowFourFifthsOfTheBudget) {
  while (ask(true)) {
  }
  const size_t most = asked_.size();
  EXPECT_TRUE(mini().turns_away());
  clock_.advance(seconds(1));
  end_one();
  EXPECT_FALSE(ask(true)) << "there is a place in the queue again, but it is the first one";
  size_t answered = 1;
  while (!ask(true)) {
    clock_.advance(seconds(1));
    end_one();
    ++answered;
    ASSERT_LT(answered, most);
  }
  EXPECT_FALSE(mini().turns_away());
  EXPECT_GE(answered, most / 5);
  EXPECT_LE(answered, most / 2);
  EXPECT_TRUE(ask(true)) << "and then not only one";
}

TEST_F(HysteresisTest, GoesByNobodyWhoWaitsLess) {
  while (ask(true)) {
  }
  clock_.advance(seconds(1));
  end_one();
  EXPECT_TRUE(ask(true, base::Priority::kHigh)) << "it goes first, and waits for a call or two";
  EXPECT_TRUE(mini().turns_away());
  EXPECT_FALSE(ask(true));
}

TEST_F(HysteresisTest, IsOutOfBudgetUntilTheDayEndsWhoeverSaysSo) {
  auto deployment = routing::deployment("mini", {}, limits_);
  deployment.budget_used_up = true;
  deployment.budget_resets_at = clock_.wall_now() + std::chrono::hours(1);
  routes_.replace(
      {.version = 2, .deployments = {deployment}, .replicas = {routing::replica("r1", "mini")}});
  EXPECT_FALSE(mini().is_usable_for({}));
  clock_.advance(std::chrono::hours(1));
  EXPECT_TRUE(mini().is_usable_for({}));
  EXPECT_TRUE(ask(false));
}

TEST_F(HysteresisTest, LetsThoseWaitThatNobodyElseTakes) {
  while (ask(false)) {
  }
  EXPECT_TRUE(mini().turns_away());
  clock_.advance(seconds(1));
  end_one();
  EXPECT_TRUE(ask(false));
}

TEST_F(HysteresisTest, ForgetsWhoWasAnsweredElsewhere) {
  while (ask(true)) {
  }
  while (!asked_.empty()) {
    clock_.advance(seconds(1));
    end_one();
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(ask(true)) << "no place is kept for those that do not come back";
  }
}

}  // namespace
}  // namespace penstock::dispatch
