#include "admission/suspect_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace penstock::admission {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const base::WallTime kNow{std::chrono::hours(500'000)};
const Fingerprint kOne = fingerprint_of("uid", "/v1/completions", "one");
const Fingerprint kTwo = fingerprint_of("uid", "/v1/completions", "two");

Suspect suspect(const Fingerprint& fingerprint, std::vector<EngineDeath> deaths) {
  return {.fingerprint = fingerprint,
          .deployment = "mini",
          .deployment_uid = "uid",
          .path = "/v1/completions",
          .deaths = std::move(deaths),
          .until = kNow + minutes(10)};
}

EngineDeath death(const std::string& replica, seconds after = seconds(0),
                  EngineEnd end = EngineEnd::kCrashed) {
  return {replica, kNow + after, "gw-1", end};
}

TEST(Fingerprint, IsSha256OfUidPathAndBodyWithNulBetween) {
  // printf 'u\0/p\0b' | sha256sum
  EXPECT_EQ(fingerprint_of("u", "/p", "b").hex(),
            "dc4d27bd8fcd5da377e1216f40019651074313c475b0393fcc5f3998b02d2158");
  EXPECT_NE(fingerprint_of("u", "/p", "b"), fingerprint_of("u/", "p", "b"));
}

TEST(SuspectTable, SuspectsAfterOneCrashAndQuarantinesAfterTwo) {
  SuspectTable table;
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear);
  table.add(suspect(kOne, {death("r1")}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  EXPECT_EQ(table.suspicion(kTwo, kNow), Suspicion::kClear);
  table.add(suspect(kOne, {death("r2", seconds(30))}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined);
}

TEST(SuspectTable, TakesFourDeathsThatHaveOtherReasonsForAsMuchAsTwoCrashes) {
  for (const EngineEnd end : {EngineEnd::kKilled, EngineEnd::kHung, EngineEnd::kLost}) {
    SuspectTable table;
    for (int i = 1; i <= 4; ++i) {
      table.add(suspect(kOne, {death("r1", seconds(60 * i), end)}));
      EXPECT_EQ(table.suspicion(kOne, kNow), i < 4 ? Suspicion::kSuspect : Suspicion::kQuarantined);
    }
  }
  SuspectTable table;
  table.add(suspect(kOne, {death("r1"), death("r2", seconds(20), EngineEnd::kKilled)}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  table.add(suspect(kOne, {death("r3", seconds(40), EngineEnd::kHung)}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined);
}

TEST(SuspectTable, TakesDeathsThatAreTenMinutesApartForChance) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  auto late = suspect(kOne, {death("r2", seconds(601))});
  late.until += minutes(10);
  table.add(late);
  EXPECT_EQ(table.suspicion(kOne, kNow + seconds(601)), Suspicion::kSuspect);
  table.add(suspect(kOne, {death("r3", seconds(900))}));
  EXPECT_EQ(table.suspicion(kOne, kNow + seconds(900)), Suspicion::kQuarantined);
}

TEST(SuspectTable, ProvesNothingAgainstTwoSuspectsByOneDeath) {
  SuspectTable table;
  const auto stranger = fingerprint_of("uid", "/p", "stranger");
  for (const auto& each : {kOne, kTwo}) table.add(suspect(each, {death("r1")}));
  for (const auto& each : {kOne, kTwo, stranger}) {
    table.add(suspect(each, {death("r2", seconds(60))}));
  }
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  EXPECT_EQ(table.suspicion(kTwo, kNow), Suspicion::kSuspect);
  table.add(suspect(kOne, {death("r3", seconds(120))}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined) << "alone this time";
  EXPECT_EQ(table.suspicion(kTwo, kNow), Suspicion::kSuspect);
  table.add(suspect(stranger, {death("r4", seconds(120))}));
  EXPECT_EQ(table.suspicion(stranger, kNow), Suspicion::kQuarantined)
      << "its first counts all the same";
}

TEST(SuspectTable, TakesTwoReportsOfOneDeathForOne) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.add(suspect(kOne, {death("r1", seconds(9))}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  table.add(suspect(kOne, {death("r1", seconds(19))}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined)
      << "it was started again and died again";
}

TEST(SuspectTable, KeepsWhatItFoundUntilASnapshotShowsIt) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.merge({});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  ASSERT_EQ(table.unshown().size(), 1U);
  EXPECT_EQ(table.unshown()[0].deaths.size(), 1U);
  table.merge({suspect(kOne, {death("r1", seconds(1))})});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect);
  EXPECT_TRUE(table.unshown().empty());
  table.merge({});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear) << "released";
  EXPECT_TRUE(table.empty());
}

TEST(SuspectTable, AddsWhatOtherGatewaysSaw) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.merge({suspect(kOne, {death("r2")}), suspect(kTwo, {death("r1"), death("r2")})});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined);
  EXPECT_EQ(table.suspicion(kTwo, kNow), Suspicion::kQuarantined);
  ASSERT_EQ(table.unshown().size(), 1U);
  EXPECT_EQ(table.unshown()[0].deaths, std::vector<EngineDeath>{death("r1")});
}

TEST(SuspectTable, ForgetsWhenTheTimeIsOver) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.forget_old(kNow + minutes(10) - seconds(1));
  EXPECT_FALSE(table.empty());
  table.forget_old(kNow + minutes(10));
  EXPECT_TRUE(table.empty());
}

TEST(SuspectTable, ClearsOneThatWasAnsweredOfAllThatWasBefore) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  EXPECT_TRUE(table.clear(kOne, kNow));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear);
  EXPECT_FALSE(table.clear(kOne, kNow)) << "nothing new";
  table.merge({suspect(kOne, {death("r1")})});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear) << "the same death, told again";
  ASSERT_EQ(table.unshown().size(), 1U) << "no snapshot has shown that it was answered";
  EXPECT_EQ(table.unshown()[0].answered, kNow);
  EXPECT_TRUE(table.unshown()[0].deaths.empty());
  table.add(suspect(kOne, {death("r2", seconds(20))}));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kSuspect) << "all begins anew";
}

TEST(SuspectTable, ClearsOneThatIsQuarantinedThoughTheClockOfItsDeathsIsAhead) {
  SuspectTable table;
  table.merge({suspect(kOne, {death("r1", seconds(5)), death("r2", seconds(30))})});
  ASSERT_EQ(table.suspicion(kOne, kNow), Suspicion::kQuarantined);
  EXPECT_TRUE(table.clear(kOne, kNow));
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear);
}

TEST(SuspectTable, HearsThatAnotherGatewayHasAnsweredIt) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  auto shown = suspect(kOne, {});
  shown.answered = kNow + seconds(1);
  table.merge({shown});
  EXPECT_EQ(table.suspicion(kOne, kNow), Suspicion::kClear)
      << "also of what it has not reported yet";
  EXPECT_TRUE(table.empty());
}

// What a head makes of one request's reports.
struct Head {
  void hear(const std::vector<Suspect>& told) {
    for (const Suspect& news : told) {
      one.answered = std::max(one.answered, news.answered);
      for (const EngineDeath& death : news.deaths) {
        const auto same = [&](const EngineDeath& known) { return same_death(known, death); };
        if (std::none_of(one.deaths.begin(), one.deaths.end(), same)) one.deaths.push_back(death);
      }
    }
    std::erase_if(one.deaths, [&](const EngineDeath& d) { return d.at <= one.answered; });
  }

  Suspect one = suspect(kOne, {});
};

// Two gateways, and any order of deaths, answers, reports and snapshots: who was answered last is
// clear, nobody is quarantined for less than four points, and once the head has told, all agree.
TEST(SuspectTable, HoldsItsRulesWhateverHappens) {
  std::mt19937 random(20261125);
  const auto any = [&random](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  constexpr std::array kEnds = {EngineEnd::kCrashed, EngineEnd::kKilled, EngineEnd::kHung,
                                EngineEnd::kLost};
  for (int round = 0; round < 500; ++round) {
    std::array<SuspectTable, 2> tables;
    Head head;
    unsigned points = 0;  // since the last answer
    for (int step = 1; step <= 12; ++step) {
      const seconds at(45 * step);
      SuspectTable& table = tables.at(static_cast<std::size_t>(any(2)));
      const int what = any(4);
      if (what == 0 && table.clear(kOne, kNow + at)) {
        points = 0;
      } else if (what == 1) {
        for (auto& each : tables) head.hear(each.unshown());
        for (auto& each : tables) each.merge({head.one});
        EXPECT_EQ(tables[0].suspicion(kOne, kNow), tables[1].suspicion(kOne, kNow));
        EXPECT_EQ(tables[0].suspicion(kOne, kNow) == Suspicion::kClear, points == 0);
        EXPECT_EQ(tables[0].suspicion(kOne, kNow) == Suspicion::kQuarantined, points >= 4);
      } else if (what > 1) {
        const EngineEnd end = kEnds.at(static_cast<std::size_t>(any(4)));
        points += end == EngineEnd::kCrashed ? 2 : 1;
        table.add(suspect(kOne, {death("r" + std::to_string(any(2)), at, end)}));
        EXPECT_NE(table.suspicion(kOne, kNow), Suspicion::kClear);
      }
    }
  }
}

TEST(SuspectTable, StaysBoundedWhenEnginesDieUnderManyRequests) {
  SuspectTable table;
  for (int i = 0; i < 5'000; ++i) {
    auto one = suspect(fingerprint_of("uid", "/p", std::to_string(i)), {death("r1")});
    one.until += seconds(i);
    table.add(one);
  }
  EXPECT_EQ(table.size(), 4096U);
  EXPECT_EQ(table.suspicion(fingerprint_of("uid", "/p", "4999"), kNow), Suspicion::kSuspect);
}

}  // namespace
}  // namespace penstock::admission
