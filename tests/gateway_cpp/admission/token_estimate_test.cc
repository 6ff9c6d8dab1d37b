#include "admission/token_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace penstock::admission {
namespace {

// As if `count` requests of so many bytes had been answered.
void teach(TokenEstimator& estimator, int count, std::size_t bytes, std::uint32_t prompt,
           std::uint32_t completion, std::optional<std::uint64_t> max_tokens = {},
           std::uint64_t choices = 1) {
  for (int i = 0; i < count; ++i) {
    estimator.learn(bytes, prompt, completion, estimator.estimate(bytes, max_tokens, choices));
  }
}

TEST(TokenEstimator, TakesAQuarterOfTheBytesBeforeItHasLearnt) {
  const TokenEstimate told = TokenEstimator().estimate(4000, {}, 1);
  EXPECT_EQ(told.prompt, 1000U);
  EXPECT_EQ(told.completion, 256U);
  EXPECT_EQ(told.tokens(), 1256U);
  EXPECT_EQ(told.work(), 1000U + 4 * 256U);
}

TEST(TokenEstimator, LearnsTokensForEachByteAndTheLengthOfAnswers) {
  TokenEstimator estimator;
  teach(estimator, 200, 3000, 1000, 80);
  const TokenEstimate told = estimator.estimate(6000, {}, 1);
  EXPECT_NEAR(told.prompt, 2000, 2);
  EXPECT_NEAR(told.completion, 80, 1);
}

TEST(TokenEstimator, TheNewestCountMost) {
  TokenEstimator estimator;
  teach(estimator, 500, 3000, 1000, 80);
  teach(estimator, 150, 3000, 1500, 400);
  const TokenEstimate told = estimator.estimate(3000, {}, 1);
  EXPECT_NEAR(told.prompt, 1500, 15);
  EXPECT_NEAR(told.completion, 400, 8);
}

TEST(TokenEstimator, NoAnswerIsTakenToBeLongerThanAskedFor) {
  TokenEstimator estimator;
  teach(estimator, 200, 3000, 1000, 80);
  EXPECT_EQ(estimator.estimate(3000, 16, 1).completion, 16U);
}

TEST(TokenEstimator, WhereAnswersUseWhatTheyAskForItSaysSo) {
  TokenEstimator estimator;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t asked = 10 + random() % 1000;
    teach(estimator, 1, 3000, 1000, static_cast<std::uint32_t>(asked), asked);
  }
  EXPECT_NEAR(estimator.estimate(3000, 900, 1).completion, 900, 1);
  EXPECT_NEAR(estimator.estimate(3000, 20, 1).completion, 20, 1);
}

TEST(TokenEstimator, WhereAnswersEndByThemselvesWhatIsAskedForSaysLittle) {
  TokenEstimator estimator;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t asked = 200 + random() % 4000;
    teach(estimator, 1, 3000, 1000, 100, asked);
  }
  EXPECT_NEAR(estimator.estimate(3000, 4000, 1).completion, 100, 2);
}

TEST(TokenEstimator, CountsEveryChoice) {
  TokenEstimator estimator;
  teach(estimator, 200, 3000, 1000, 300, {}, 3);
  EXPECT_NEAR(estimator.estimate(3000, {}, 1).completion, 100, 1);
  EXPECT_NEAR(estimator.estimate(3000, {}, 4).completion, 400, 4);
}

TEST(TokenEstimator, SenselessNumbersStayWithinBounds) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  TokenEstimator estimator;
  const TokenEstimate told = estimator.estimate(kMost, kMost, kMost);
  EXPECT_EQ(told.prompt, std::numeric_limits<std::uint32_t>::max());
  EXPECT_LE(told.work(), 5 * std::uint64_t{std::numeric_limits<std::uint32_t>::max()});
  EXPECT_EQ(estimator.estimate(100, {}, 0).choices, 1U);
  estimator.learn(0, 0, 0, told);
  EXPECT_EQ(estimator.estimate(400, {}, 1).prompt, 100U);
}

TEST(TokenEstimator, RefusesNothingBeforeItHasLearnt) {
  TokenEstimator estimator;
  teach(estimator, 31, 3000, 1000, 80);
  EXPECT_EQ(estimator.least_prompt(1'000'000), 0U);
  teach(estimator, 1, 3000, 1000, 80);
  EXPECT_GT(estimator.least_prompt(1'000'000), 0U);
}

TEST(TokenEstimator, TheLeastCountIsAlmostNeverAboveTheTrueOne) {
  TokenEstimator estimator;
  std::mt19937_64 random(1);
  std::normal_distribution<> ratio(0.28, 0.05);
  int above = 0;
  constexpr int kRequests = 20'000;
  for (int i = 0; i < kRequests; ++i) {
    const std::size_t bytes = 200 + random() % 20'000;
    const double tokens = static_cast<double>(bytes) * std::max(0.05, ratio(random));
    const auto prompt = static_cast<std::uint32_t>(tokens);
    if (estimator.least_prompt(bytes) > prompt) ++above;
    teach(estimator, 1, bytes, prompt, 50);
  }
  EXPECT_LT(above, kRequests / 1000);
  EXPECT_GT(estimator.least_prompt(100'000), 3600U) << "and still says something";
}

}  // namespace
}  // namespace penstock::admission
