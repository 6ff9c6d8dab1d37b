#include "simulated/timing.h"

#include <gtest/gtest.h>

namespace penstock::replica::simulated {
namespace {

using std::chrono::milliseconds;

constexpr Time kPeriod = milliseconds(20);

TEST(Timing, ARateIsAPeriodAndNoRateIsNoPace) {
  EXPECT_EQ(period_of(50), milliseconds(20));
  EXPECT_EQ(period_of(0), Time(0));
}

TEST(Timing, StreamsOfOneRateShareTheirSteps) {
  const int64_t early = second_token_step(milliseconds(101), kPeriod);
  const int64_t late = second_token_step(milliseconds(109), kPeriod);
  EXPECT_EQ(early, late);
}

TEST(Timing, TheSecondTokenComesHalfToOneAndAHalfPeriodsAfterTheFirst) {
  for (int64_t ms = 0; ms < 40; ++ms) {
    const Time first = milliseconds(ms);
    const Time gap = second_token_step(first, kPeriod) * kPeriod - first;
    EXPECT_GT(gap, kPeriod / 2) << ms;
    EXPECT_LE(gap, kPeriod * 3 / 2) << ms;
  }
}

TEST(Timing, ATokenIsDueAtItsStepAndNotBefore) {
  EXPECT_EQ(tokens_due(5, milliseconds(99), kPeriod), 0);
  EXPECT_EQ(tokens_due(5, milliseconds(100), kPeriod), 1);
  EXPECT_EQ(tokens_due(5, milliseconds(119), kPeriod), 1);
}

TEST(Timing, ALateStepOwesWhatWasMissed) {
  EXPECT_EQ(tokens_due(5, milliseconds(145), kPeriod), 3);
}

}  // namespace
}  // namespace penstock::replica::simulated
