#include "runtime/timer_wheel.h"

#include <gtest/gtest.h>

#include <memory>

#include "fixed_clock.h"

namespace penstock::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TimerWheelTest : public testing::Test {
 protected:
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    wheel_.advance(clock_.steady_now());
  }

  test::FixedClock clock_;
  TimerWheel wheel_{clock_.steady_now()};
  runtime::Signal signal_;
  TimerWheel::Timer timer_{wheel_, signal_};
};

TEST_F(TimerWheelTest, FiresNeverEarlyAndAtMostTwoTicksLate) {
  timer_.arm(milliseconds(500));
  pass(milliseconds(499));
  EXPECT_FALSE(timer_.fired());
  pass(milliseconds(1) + 2 * TimerWheel::kTick);
  EXPECT_TRUE(timer_.fired());
}

TEST_F(TimerWheelTest, FiresWhatIsDueLaterThanOneRound) {
  timer_.arm(seconds(120));
  for (int i = 0; i < 119; ++i) pass(seconds(1));
  EXPECT_FALSE(timer_.fired());
  pass(seconds(2));
  EXPECT_TRUE(timer_.fired());
}

TEST_F(TimerWheelTest, CatchesUpAfterALongPause) {
  timer_.arm(seconds(1));
  pass(seconds(3'000));
  EXPECT_TRUE(timer_.fired());
}

TEST_F(TimerWheelTest, ForgetsADisarmedTimer) {
  timer_.arm(milliseconds(100));
  timer_.disarm();
  pass(seconds(1));
  EXPECT_FALSE(timer_.fired());
}

TEST_F(TimerWheelTest, MovesATimerThatIsArmedAgain) {
  timer_.arm(milliseconds(100));
  timer_.arm(milliseconds(1'000));
  pass(milliseconds(500));
  EXPECT_FALSE(timer_.fired());
  pass(milliseconds(700));
  EXPECT_TRUE(timer_.fired());
}

TEST_F(TimerWheelTest, OutlivesTimersThatGoBeforeTheyFire) {
  auto gone = std::make_unique<TimerWheel::Timer>(wheel_, signal_);
  gone->arm(milliseconds(100));
  timer_.arm(milliseconds(100));
  gone.reset();
  pass(seconds(1));
  EXPECT_TRUE(timer_.fired());
}

}  // namespace
}  // namespace penstock::runtime
