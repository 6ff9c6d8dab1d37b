#include "observe/trace_rule.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock::observe {
namespace {

using base::Outcome;
using std::chrono::milliseconds;

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63U;

base::TraceContext own(std::uint64_t id_low) { return {.id_high = 1, .id_low = id_low, .span = 2}; }
base::TraceContext callers(bool sampled) {
  return {.id_high = 1, .id_low = 1, .parent = 3, .span = 2, .sampled = sampled};
}

TEST(TraceRule, GoesByTheCallersFlagWhateverTheShare) {
  EXPECT_TRUE(is_sampled({.collects = true, .sample = 0}, callers(true)));
  EXPECT_FALSE(is_sampled({.collects = true, .sample = 1}, callers(false)));
}

TEST(TraceRule, ChoosesItsShareOfTheOthersByTheirTracesId) {
  const auto chosen = [](double share, std::uint64_t id_low) {
    return is_sampled({.collects = true, .sample = share}, own(id_low));
  };
  EXPECT_FALSE(chosen(0, 1));
  EXPECT_TRUE(chosen(0.5, kHalf - 2048));
  EXPECT_FALSE(chosen(0.5, kHalf));
  EXPECT_TRUE(chosen(1, kHalf));
}

TEST(TraceRule, ChoosesNothingWithoutACollector) {
  EXPECT_FALSE(is_sampled({.sample = 1}, own(1)));
  EXPECT_FALSE(is_sampled({.sample = 1}, callers(true)));
  EXPECT_FALSE(is_traced({.slow = milliseconds(1)}, {.outcome = Outcome::kFailed}));
}

TEST(TraceRule, SendsAtTheEndWhatFailedOrWasSlowHoweverItsCallerChose) {
  const TraceRule rule{.collects = true, .slow = milliseconds(500)};
  const auto traced = [&](Outcome outcome, std::uint64_t us) {
    return is_traced(rule, {.outcome = outcome, .duration_us = us, .trace = callers(false)});
  };
  EXPECT_TRUE(traced(Outcome::kFailed, 1));
  EXPECT_TRUE(traced(Outcome::kSucceeded, 500'000));
  EXPECT_FALSE(traced(Outcome::kSucceeded, 499'999));
  for (const Outcome outcome : {Outcome::kRejected, Outcome::kCancelled, Outcome::kInvalid}) {
    EXPECT_FALSE(traced(outcome, 1)) << "clients would decide what a collector has to take";
  }
}

TEST(TraceRule, SendsWhatWasChosenAtItsStartAndNothingThatIsOnlySlowWhereNobodyAsked) {
  const TraceRule rule{.collects = true};
  EXPECT_TRUE(is_traced(rule, {.outcome = Outcome::kSucceeded, .trace = callers(true)}));
  EXPECT_FALSE(is_traced(rule, {.outcome = Outcome::kSucceeded,
                                .duration_us = std::numeric_limits<std::uint32_t>::max(),
                                .trace = callers(false)}));
}

}  // namespace
}  // namespace penstock::observe
