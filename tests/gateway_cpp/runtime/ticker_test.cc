#include "runtime/ticker.h"

#include <gtest/gtest.h>

#include <chrono>

#include "event_loop.h"
#include "fixed_clock.h"

namespace penstock::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

class TickerTest : public testing::Test {
 protected:
  // Somebody is awake so long after the last time.
  void pass_after(std::chrono::nanoseconds time) {
    clock_.advance(time);
    ticker_.pass();
    loop_.poll();
  }

  test::EventLoop loop_;
  test::FixedClock clock_;
  milliseconds period_ = hours(1);
  int ticks_ = 0;
  Ticker ticker_{loop_.io(), clock_, [this] {
                   ++ticks_;
                   return period_;
                 }};
};

TEST_F(TickerTest, TicksAtItsStartAndAfterEachPeriod) {
  period_ = milliseconds(1);
  ticker_.start();
  EXPECT_EQ(ticks_, 1);
  EXPECT_TRUE(loop_.run_until([&] { return ticks_ == 4; }));
}

TEST_F(TickerTest, TicksForWhoeverIsAwakeWhenMostOfThePeriodIsOver) {
  ticker_.start();
  pass_after(minutes(35));
  EXPECT_EQ(ticks_, 1);
  pass_after(minutes(2));
  EXPECT_EQ(ticks_, 2);
  pass_after(minutes(35));
  EXPECT_EQ(ticks_, 2) << "the next period began with the tick";
}

TEST_F(TickerTest, TicksOnceForAllWhoPassInOneTurn) {
  ticker_.start();
  clock_.advance(minutes(50));
  for (int i = 0; i < 3; ++i) ticker_.pass();
  EXPECT_EQ(ticks_, 1) << "who passes has its own work to end first";
  loop_.poll();
  EXPECT_EQ(ticks_, 2);
}

TEST_F(TickerTest, TicksInTheNextTurnOnceItIsToHurry) {
  ticker_.start();
  ticker_.hurry();
  EXPECT_EQ(ticks_, 1);
  loop_.poll();
  EXPECT_EQ(ticks_, 2);
  pass_after(minutes(35));
  EXPECT_EQ(ticks_, 2) << "the next period is a whole one";
}

TEST_F(TickerTest, GoesByThePeriodThatTheLastTickNamed) {
  ticker_.start();
  period_ = milliseconds(1);
  pass_after(hours(1));
  EXPECT_TRUE(loop_.run_until([&] { return ticks_ >= 4; }));
}

TEST_F(TickerTest, TicksNoMoreOnceItIsStopped) {
  ticker_.start();
  ticker_.stop();
  pass_after(hours(2));
  EXPECT_EQ(ticks_, 1);
}

}  // namespace
}  // namespace penstock::runtime
