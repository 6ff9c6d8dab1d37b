#include "admission/day_ledger.h"

#include <gtest/gtest.h>

#include <chrono>

namespace penstock::admission {
namespace {

constexpr base::WallTime kMidnight{std::chrono::hours(24 * 20'000)};
constexpr base::WallTime kNoon = kMidnight - std::chrono::hours(12);

UsageCounts tokens(std::uint64_t prompt) { return {.requests = 1, .prompt_tokens = prompt}; }

TEST(DayLedger, HasNothingUntilTheHeadTellsAndKnowsWhenTheDayEnds) {
  const DayLedger ledger;
  const DayStanding standing = ledger.standing("acme", "key-1", kNoon);
  EXPECT_EQ(standing.as_of, base::WallTime{});
  EXPECT_EQ(standing.ends_at, kMidnight);
  EXPECT_EQ(standing.tenant, UsageCounts{});
}

TEST(DayLedger, KeepsWhatDidNotChangeAndAddsUpATenantsKeys) {
  DayLedger ledger;
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .whole = true,
               .sums = {{"acme", "key-1", tokens(10)}, {"acme", "key-2", tokens(5)}}});
  ledger.hear({.as_of = kNoon + std::chrono::seconds(1),
               .ends_at = kMidnight,
               .sums = {{"acme", "key-1", tokens(12)}, {"other", "key-3", tokens(1)}}});
  const DayStanding standing = ledger.standing("acme", "key-1", kNoon);
  EXPECT_EQ(standing.as_of, kNoon + std::chrono::seconds(1));
  EXPECT_EQ(standing.key, tokens(12));
  EXPECT_EQ(standing.tenant, (UsageCounts{.requests = 2, .prompt_tokens = 17}));
  EXPECT_EQ(ledger.standing("acme", "new", kNoon).key, UsageCounts{});
  EXPECT_EQ(ledger.standing("nobody", "", kNoon).tenant, UsageCounts{});
}

TEST(DayLedger, BeginsAnewWhenItIsToldAllAndWhenTheDayIsOver) {
  DayLedger ledger;
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .sums = {{"acme", "key-1", tokens(10)}}});
  const DayStanding next = ledger.standing("acme", "key-1", kMidnight);
  EXPECT_EQ(next.key, UsageCounts{});
  EXPECT_EQ(next.ends_at, kMidnight + std::chrono::hours(24));
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .whole = true, .sums = {}});
  EXPECT_EQ(ledger.standing("acme", "key-1", kNoon).key, UsageCounts{});
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .sums = {{"acme", "key-1", tokens(7)}}});
  ledger.hear({.as_of = kMidnight, .ends_at = kMidnight + std::chrono::hours(24), .sums = {}});
  EXPECT_EQ(ledger.standing("acme", "key-1", kMidnight).tenant, UsageCounts{});
}

}  // namespace
}  // namespace penstock::admission
