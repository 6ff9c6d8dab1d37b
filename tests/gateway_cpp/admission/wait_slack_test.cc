#include "admission/wait_slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;

constexpr base::SteadyTime kLater{std::chrono::hours(1)};

milliseconds within(const WaitSlack& slack) { return slack.within(milliseconds(1000), kLater); }

void learn(WaitSlack& slack, std::size_t times, milliseconds estimated, milliseconds real) {
  for (std::size_t i = 0; i < times; ++i) slack.learn(estimated, real, kLater);
}

TEST(WaitSlack, IsNoneUntilWaitsTurnOutLonger) {
  WaitSlack slack;
  EXPECT_EQ(within(slack), milliseconds(1000));
  learn(slack, WaitSlack::kWaits, milliseconds(1000), milliseconds(300));
  EXPECT_EQ(within(slack), milliseconds(1000));
}

TEST(WaitSlack, OneLongWaitSaysNothingAndTwoDo) {
  WaitSlack slack;
  learn(slack, 1, milliseconds(100), milliseconds(140));
  EXPECT_EQ(within(slack), milliseconds(1000));
  learn(slack, 1, milliseconds(200), milliseconds(250));
  EXPECT_EQ(within(slack), milliseconds(1250));
  learn(slack, 1, milliseconds(100), milliseconds(130));
  EXPECT_EQ(within(slack), milliseconds(1300)) << "whichever came first";
}

TEST(WaitSlack, IsHalfOfTheEstimateAtMost) {
  WaitSlack slack;
  learn(slack, 20, milliseconds(1), milliseconds(60'000));
  EXPECT_EQ(within(slack), milliseconds(1500));
}

TEST(WaitSlack, IsForgottenWithTheWaitsThatShowedIt) {
  WaitSlack slack;
  learn(slack, 2, milliseconds(100), milliseconds(140));
  learn(slack, WaitSlack::kWaits - 2, milliseconds(100), milliseconds(100));
  EXPECT_EQ(within(slack), milliseconds(1400));
  learn(slack, 1, milliseconds(100), milliseconds(100));
  EXPECT_EQ(within(slack), milliseconds(1000));
}

TEST(WaitSlack, IsForgottenInAMinuteThoughNobodyWaits) {
  WaitSlack slack;
  learn(slack, 20, milliseconds(100), milliseconds(140));
  const auto later = kLater + WaitSlack::kMemory;
  EXPECT_EQ(slack.within(milliseconds(1000), later), milliseconds(1400));
  EXPECT_EQ(slack.within(milliseconds(1000), later + milliseconds(1)), milliseconds(1000));
}

TEST(WaitSlack, CoversNearlyAllOfWaitsThatScatter) {
  std::mt19937 random(7);
  std::normal_distribution<double> scatter(1.0, 0.12);
  WaitSlack slack;
  int beyond = 0;
  constexpr int kWaits = 20'000;
  for (int i = 0; i < kWaits; ++i) {
    const milliseconds real(static_cast<int>(1000 * std::max(0.0, scatter(random))));
    beyond += real > within(slack) ? 1 : 0;
    slack.learn(milliseconds(1000), real, kLater);
  }
  EXPECT_LT(beyond, kWaits * 2 / 100);
  EXPECT_GT(beyond, kWaits / 1000);
}

}  // namespace
}  // namespace penstock::admission
