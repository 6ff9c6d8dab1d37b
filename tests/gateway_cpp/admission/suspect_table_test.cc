#include "admission/suspect_table.h"

#include <gtest/gtest.h>

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

EngineDeath death(const std::string& replica, seconds after = seconds(0)) {
  return {replica, kNow + after, "gw-1"};
}

TEST(Fingerprint, IsSha256OfUidPathAndBodyWithNulBetween) {
  // printf 'u\0/p\0b' | sha256sum
  EXPECT_EQ(fingerprint_of("u", "/p", "b").hex(),
            "dc4d27bd8fcd5da377e1216f40019651074313c475b0393fcc5f3998b02d2158");
  EXPECT_NE(fingerprint_of("u", "/p", "b"), fingerprint_of("u/", "p", "b"));
}

TEST(SuspectTable, SuspectsAfterOneDeathAndQuarantinesAfterTwo) {
  SuspectTable table;
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kClear);
  table.add(suspect(kOne, {death("r1")}));
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kSuspect);
  EXPECT_EQ(table.standing(kTwo, kNow), Standing::kClear);
  table.add(suspect(kOne, {death("r2", seconds(30))}));
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kQuarantined);
}

TEST(SuspectTable, TakesTwoReportsOfOneDeathForOne) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.add(suspect(kOne, {death("r1", seconds(9))}));
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kSuspect);
  table.add(suspect(kOne, {death("r1", seconds(19))}));
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kQuarantined)
      << "it was started again and died again";
}

TEST(SuspectTable, KeepsWhatItFoundUntilASnapshotShowsIt) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.merge({});
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kSuspect);
  ASSERT_EQ(table.unshown().size(), 1U);
  EXPECT_EQ(table.unshown()[0].deaths.size(), 1U);
  table.merge({suspect(kOne, {death("r1", seconds(1))})});
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kSuspect);
  EXPECT_TRUE(table.unshown().empty());
  table.merge({});
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kClear) << "released";
  EXPECT_TRUE(table.empty());
}

TEST(SuspectTable, AddsWhatOtherGatewaysSaw) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.merge({suspect(kOne, {death("r2")}), suspect(kTwo, {death("r1"), death("r2")})});
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kQuarantined);
  EXPECT_EQ(table.standing(kTwo, kNow), Standing::kQuarantined);
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

TEST(SuspectTable, ClearsOneThatWasAnsweredUntilAnotherEngineDies) {
  SuspectTable table;
  table.add(suspect(kOne, {death("r1")}));
  table.clear(kOne);
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kClear);
  table.merge({suspect(kOne, {death("r1")})});
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kClear) << "the same death, told again";
  table.add(suspect(kOne, {death("r2")}));
  EXPECT_EQ(table.standing(kOne, kNow), Standing::kQuarantined);
}

TEST(SuspectTable, StaysBoundedWhenEnginesDieUnderManyRequests) {
  SuspectTable table;
  for (int i = 0; i < 5'000; ++i) {
    auto one = suspect(fingerprint_of("uid", "/p", std::to_string(i)), {death("r1")});
    one.until += seconds(i);
    table.add(one);
  }
  EXPECT_EQ(table.size(), 4096U);
  EXPECT_EQ(table.standing(fingerprint_of("uid", "/p", "4999"), kNow), Standing::kSuspect);
}

}  // namespace
}  // namespace penstock::admission
