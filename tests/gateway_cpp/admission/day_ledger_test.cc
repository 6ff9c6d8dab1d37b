#include "admission/day_ledger.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>

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

// Reserves so many tokens of a limit of 300; what the ledger says against it.
std::variant<DayReservation, Refusal> of_300(DayLedger& ledger, std::uint64_t tokens,
                                             base::WallTime now = kNoon) {
  return ledger.reserve({"acme", {}}, {.tokens = 300}, {.tokens = tokens}, now);
}
Refusal refusal(DayLedger& ledger, std::uint64_t tokens) {
  auto taken = of_300(ledger, tokens);
  EXPECT_TRUE(std::holds_alternative<Refusal>(taken));
  return std::holds_alternative<Refusal>(taken) ? std::get<Refusal>(taken) : Refusal{};
}
DayReservation taken(DayLedger& ledger, std::uint64_t tokens, base::WallTime now = kNoon) {
  auto got = of_300(ledger, tokens, now);
  EXPECT_TRUE(std::holds_alternative<DayReservation>(got));
  return std::holds_alternative<DayReservation>(got) ? std::get<DayReservation>(std::move(got))
                                                     : DayReservation{};
}

TEST(DayLedger, AdmitsNoMoreThanIsLeftHoweverManyComeAtOnce) {
  DayLedger ledger;
  DayReservation first = taken(ledger, 200);
  const Refusal waits = refusal(ledger, 200);
  EXPECT_EQ(waits.reason, DropReason::kRateLimited) << "the first may yet cost less";
  EXPECT_EQ(waits.retry_after, std::chrono::seconds(1));
  EXPECT_NE(waits.detail.find("300 tokens a day"), std::string::npos) << waits.detail;
  first.settle({.tokens = 200});
  const Refusal over = refusal(ledger, 200);
  EXPECT_EQ(over.reason, DropReason::kQuota);
  EXPECT_EQ(over.retry_after, std::chrono::hours(12));
  EXPECT_NE(over.detail.find("100 of 300 tokens a day are left"), std::string::npos);
  EXPECT_NE(over.detail.find("T00:00:00Z"), std::string::npos) << over.detail;
  const DayReservation smaller = taken(ledger, 100);
}

TEST(DayLedger, GivesBackWhatARequestDidNotUse) {
  DayLedger ledger;
  taken(ledger, 300).settle({.tokens = 10});
  { const DayReservation refused_elsewhere = taken(ledger, 290); }
  const DayReservation again = taken(ledger, 290);
}

TEST(DayLedger, CountsWhatItsOwnRequestsUsedOnce) {
  DayLedger ledger;
  taken(ledger, 100).settle({.tokens = 100});
  ASSERT_EQ(ledger.holds().size(), 1U);
  EXPECT_EQ(ledger.holds()[0].used.tokens, 100U);
  taken(ledger, 50).settle({.tokens = 50});
  // The head has heard of the first, and of 30 tokens elsewhere.
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .whole = true,
               .sums = {{"acme", "key-1", tokens(130)}},
               .shares = {{{"acme", {}}, DayAmount{.tokens = 100}, {}}}});
  EXPECT_EQ(ledger.standing("acme", "key-1", kNoon).tenant_taken.tokens, 180U);
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .sums = {{"acme", "key-1", tokens(180)}},
               .shares = {{{"acme", {}}, DayAmount{.tokens = 150}, {}}}});
  EXPECT_EQ(ledger.standing("acme", "key-1", kNoon).tenant_taken.tokens, 180U);
  EXPECT_TRUE(ledger.holds().empty());
}

TEST(DayLedger, LeavesWhatOtherGatewaysHaveReserved) {
  DayLedger ledger;
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .whole = true,
               .shares = {{{"acme", {}}, std::nullopt, {.tokens = 250}}}});
  EXPECT_EQ(refusal(ledger, 100).reason, DropReason::kRateLimited);
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .whole = true});
  const DayReservation free_again = taken(ledger, 100);
}

TEST(DayLedger, AHeadThatForgotWhatWasUsedHereChangesNothingOfIt) {
  DayLedger ledger;
  taken(ledger, 100).settle({.tokens = 100});
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .whole = true,
               .sums = {{"acme", "key-1", tokens(100)}},
               .shares = {{{"acme", {}}, DayAmount{.tokens = 100}, {}}}});
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .whole = true,
               .sums = {{"acme", "key-1", tokens(100)}},
               .shares = {{{"acme", {}}, std::nullopt, {.tokens = 1}}}});
  EXPECT_EQ(ledger.standing("acme", "key-1", kNoon).tenant_taken.tokens, 101U);
}

TEST(DayLedger, BeginsANewDayByItselfWithWhatIsStillUnderWay) {
  DayLedger ledger;
  taken(ledger, 200).settle({.tokens = 200});
  DayReservation long_one = taken(ledger, 100);
  const DayReservation next_day = taken(ledger, 200, kMidnight);
  const auto none_left = of_300(ledger, 1, kMidnight);
  EXPECT_TRUE(std::holds_alternative<Refusal>(none_left));
  long_one.settle({.tokens = 10});
  const DayReservation fits = taken(ledger, 90, kMidnight);
}

TEST(DayLedger, WhatIsToldLateOfADayThatIsOverDoesNotCount) {
  DayLedger ledger;
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .sums = {{"acme", "k", tokens(300)}}});
  taken(ledger, 1, kMidnight).settle({.tokens = 1});
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .sums = {{"acme", "k", tokens(300)}}});
  const DayReservation all_but_one = taken(ledger, 299, kMidnight);
}

TEST(DayLedger, HoldsKeysAndMoneyToLimitsOfTheirOwn) {
  DayLedger ledger;
  const DayHolder key{"acme", "key-1"};
  const DayAmount limit{.nanousd = 2'500'000'000};
  const auto ask = [&](std::uint64_t nanousd) {
    return ledger.reserve(key, limit, {.tokens = 1'000, .nanousd = nanousd}, kNoon);
  };
  auto first = ask(2'000'000'000);
  ASSERT_TRUE(std::holds_alternative<DayReservation>(first));
  std::get<DayReservation>(first).settle({.tokens = 10, .nanousd = 1'750'000'000});
  const auto second = ask(1'000'000'000);
  ASSERT_TRUE(std::holds_alternative<Refusal>(second));
  EXPECT_EQ(std::get<Refusal>(second).detail,
            "0.75 of $2.5 a day are left for this key, and this request is reckoned at $1.0; the "
            "next day begins at 2024-10-04T00:00:00Z");
  EXPECT_TRUE(std::holds_alternative<DayReservation>(ask(0))) << "it costs nothing";
}

// For an answer that nobody has limited, after a prompt of 100 tokens: at least `least` tokens.
std::uint64_t answer_of(const DayLedger& ledger, const DayAmount& limits, std::uint64_t least) {
  const DayAsk ask{.prompt = 100,
                   .least = least,
                   .most = 4'096,
                   .prices = {.input = 1, .output = 10, .cached = 0}};
  return ledger.answer_within({"acme", {}}, limits, ask, kNoon);
}

TEST(DayLedger, AnswersWithoutALimitGetAPartOfWhatIsLeftAndNeverMore) {
  DayLedger ledger;
  EXPECT_EQ(answer_of(ledger, {.tokens = 10'000'000}, 400), 4'096U) << "as long as may be";
  EXPECT_EQ(answer_of(ledger, {.tokens = 64'100}, 400), 1'000U) << "a 64th of what is left";
  EXPECT_EQ(answer_of(ledger, {.tokens = 3'000}, 400), 400U) << "as answers are";
  EXPECT_EQ(answer_of(ledger, {.tokens = 300}, 400), 200U) << "all there is, for one alone";
  const DayAmount dollar{.nanousd = 1'000'000'000};
  EXPECT_EQ(answer_of(ledger, dollar, 400), 1'562U) << "a 64th of what a dollar pays";
  EXPECT_EQ(answer_of(ledger, {.nanousd = 100'000 + 70'000}, 400), 7U) << "a prompt and seven";
}

TEST(DayLedger, WhatMayComeOfManyAtOnceIsNeverMoreThanIsLeft) {
  DayLedger ledger;
  const DayHolder acme{"acme", {}};
  std::vector<DayReservation> under_way;
  std::uint64_t promised = 0;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t answer = answer_of(ledger, {.tokens = 3'000}, 400);
    auto got = ledger.reserve(acme, {.tokens = 3'000}, {.tokens = 100 + answer}, kNoon);
    if (auto* taken = std::get_if<DayReservation>(&got)) {
      promised += 100 + answer;
      under_way.push_back(std::move(*taken));
    } else {
      EXPECT_EQ(std::get<Refusal>(got).reason, DropReason::kRateLimited) << "room comes back";
    }
  }
  EXPECT_EQ(under_way.size(), 6U);
  EXPECT_LE(promised, 3'000U);
}

TEST(DayLedger, AnAnswerThatIsAskedForIsNotCut) {
  const DayLedger ledger;
  const DayAsk ask{.prompt = 10, .least = 4'000, .most = 4'000, .is_fixed = true};
  EXPECT_EQ(ledger.answer_within({"acme", {}}, {.tokens = 300}, ask, kNoon), 4'000U);
}

// What a deployment has of its budget of 300 tokens.
std::optional<DayReservation> of_budget(DayLedger& ledger, std::uint64_t tokens) {
  auto got = ledger.reserve({.tenant = {}, .key_id = {}, .deployment = "cloud"}, {.tokens = 300},
                            {.tokens = tokens}, kNoon);
  if (std::holds_alternative<Refusal>(got)) return std::nullopt;
  return std::get<DayReservation>(std::move(got));
}

TEST(DayLedger, HoldsDeploymentsToBudgetsByWhatTheHeadSaysThatTheySpent) {
  DayLedger ledger;
  const DayHolder cloud{.tenant = {}, .key_id = {}, .deployment = "cloud"};
  ledger.hear({.as_of = kNoon,
               .ends_at = kMidnight,
               .sums = {{"", "", tokens(1'000)}},
               .spent = {{"cloud", tokens(100)}, {"other", tokens(1'000)}},
               .shares = {{cloud, std::nullopt, {.tokens = 50}}}});
  EXPECT_FALSE(of_budget(ledger, 151));
  EXPECT_FALSE(ledger.has_room(cloud, {.tokens = 300}, {.tokens = 151}, kNoon));
  EXPECT_TRUE(ledger.has_room(cloud, {.tokens = 300}, {.tokens = 150}, kNoon));
  EXPECT_TRUE(ledger.has_room(cloud, {.tokens = 300}, {.tokens = 250}, kMidnight)) << "a new day";
  EXPECT_TRUE(of_budget(ledger, 150));
  ledger.hear({.as_of = kNoon, .ends_at = kMidnight, .whole = true});
  EXPECT_TRUE(of_budget(ledger, 300)) << "what was told before is no more";
}

TEST(DayLedger, LeavesToOthersWhatARequestNeedsNoMore) {
  DayLedger ledger;
  auto first = of_budget(ledger, 200);
  ASSERT_TRUE(first);
  first->shrink_to({.tokens = 250});
  EXPECT_FALSE(of_budget(ledger, 101));
  first->shrink_to({.tokens = 20});
  EXPECT_TRUE(of_budget(ledger, 280));
  EXPECT_FALSE(of_budget(ledger, 281));
  auto more = of_budget(ledger, 280);
  ASSERT_TRUE(more);
  first->join(*std::move(more));
  EXPECT_FALSE(of_budget(ledger, 1));
  first->settle({.tokens = 30});
  EXPECT_TRUE(of_budget(ledger, 270));
  EXPECT_FALSE(of_budget(ledger, 271));
  DayReservation none;
  none.join(*of_budget(ledger, 270));
  EXPECT_FALSE(of_budget(ledger, 1)) << "it has what it was given";
}

}  // namespace
}  // namespace penstock::admission
