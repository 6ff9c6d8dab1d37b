#include "base/slo.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

using std::chrono::milliseconds;

const Slo kAsked{.ttft = milliseconds(100), .total = milliseconds(1000), .errors = true};

Verdict of(Objective objective, const RequestEnd& end, const Slo& slo = kAsked) {
  return judged(slo, end)[static_cast<std::size_t>(objective)];
}

TEST(Slo, JudgesNothingThatNobodyAskedFor) {
  const RequestEnd end{.outcome = Outcome::kFailed, .ttft = milliseconds(9), .streamed = true};
  for (const Verdict verdict : judged({}, end)) EXPECT_EQ(verdict, Verdict::kNotJudged);
}

TEST(Slo, JudgesTheFirstTokenOfStreamsHoweverTheyEnd) {
  RequestEnd end{.outcome = Outcome::kFailed, .ttft = milliseconds(100), .streamed = true};
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kGood);
  end.ttft = milliseconds(101);
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kBad);
  end.streamed = false;
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kNotJudged);
}

TEST(Slo, JudgesTheWholeOfAnswersThatSucceeded) {
  RequestEnd end{.outcome = Outcome::kSucceeded, .duration = milliseconds(1000)};
  EXPECT_EQ(of(Objective::kTotal, end), Verdict::kGood);
  end.duration = milliseconds(1001);
  EXPECT_EQ(of(Objective::kTotal, end), Verdict::kBad);
  end.outcome = Outcome::kFailed;
  EXPECT_EQ(of(Objective::kTotal, end), Verdict::kNotJudged);
}

TEST(Slo, TakesAClientThatWaitedTooLongAndLeftForABadEnd) {
  RequestEnd end{.outcome = Outcome::kCancelled, .duration = milliseconds(101)};
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kBad);
  EXPECT_EQ(of(Objective::kTotal, end), Verdict::kNotJudged);
  end.duration = milliseconds(99);
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kNotJudged);
  end.duration = milliseconds(1001);
  EXPECT_EQ(of(Objective::kTotal, end), Verdict::kBad);
  end.ttft = milliseconds(5);
  end.streamed = true;
  EXPECT_EQ(of(Objective::kTtft, end), Verdict::kGood);
}

TEST(Slo, CountsErrorsThatAreNeitherTheClientsNorALimitsThatSomebodySet) {
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kSucceeded}), Verdict::kGood);
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kFailed}), Verdict::kBad);
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kRejected}), Verdict::kBad);
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kRejected, .own_limit = true}),
            Verdict::kNotJudged);
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kCancelled}), Verdict::kNotJudged);
  EXPECT_EQ(of(Objective::kErrors, {.outcome = Outcome::kInvalid}), Verdict::kNotJudged);
}

}  // namespace
}  // namespace penstock::base
