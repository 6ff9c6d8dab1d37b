#include "admission/tenants.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock::admission {
namespace {

using base::Priority;
using std::chrono::seconds;

constexpr base::WallTime kSomeDay{seconds(1'700'000'000)};

Tenant tenant(const std::string& id, const std::vector<std::string>& keys) {
  KeyHasher hash;
  Tenant tenant{.id = id};
  for (const std::string& key : keys) tenant.keys.push_back({"id-of-" + key, hash(key)});
  return tenant;
}

class Keys : public testing::Test {
 protected:
  std::variant<Caller, KeyFault> find(std::string_view key, base::WallTime now = kSomeDay) {
    return reader_.find(key, now);
  }
  Caller caller(std::string_view key) {
    auto found = find(key);
    if (!std::holds_alternative<Caller>(found)) ADD_FAILURE() << key << " is no caller's";
    return std::holds_alternative<Caller>(found) ? std::get<Caller>(found) : Caller{};
  }

  static constexpr base::SteadyTime kNever{};
  TenantTable table_;
  TenantReader reader_{table_};
};

TEST(KeyHasher, IsSha256) {
  KeyHasher hash;
  const KeyHash abc = hash("abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(abc[0], 0xba);
  EXPECT_EQ(abc[1], 0x78);
  EXPECT_EQ(abc[31], 0xad);
  EXPECT_EQ(hash("abc"), abc) << "again, with the same hasher";
  EXPECT_NE(hash("abd"), abc);
}

TEST_F(Keys, BeforeAnyIsMadeEverybodyMayCall) {
  EXPECT_EQ(caller("").tenant->id, "");
  EXPECT_EQ(caller("none").tenant->id, "");
  EXPECT_EQ(caller("none").key_id, "");
  EXPECT_TRUE(std::holds_alternative<TenantReservation>(
      caller("").meter->reserve(1'000'000, base::SteadyTime{}, kSomeDay)));
}

TEST_F(Keys, ATenantIsFoundByItsId) {
  table_.replace({tenant("acme", {"sk-1"})}, true, kNever);
  EXPECT_EQ(table_.current()->of_id("acme"), caller("sk-1").tenant);
  EXPECT_EQ(table_.current()->of_id("other"), nullptr);
  EXPECT_EQ(table_.current()->of_id("")->id, "");
}

TEST_F(Keys, AKeyNamesItsTenant) {
  table_.replace({tenant("acme", {"sk-1", "sk-2"}), tenant("other", {"sk-3"})}, true, kNever);
  EXPECT_EQ(caller("sk-2").tenant->id, "acme");
  EXPECT_EQ(caller("sk-2").key_id, "id-of-sk-2");
  EXPECT_EQ(caller("sk-3").tenant->id, "other");
  EXPECT_EQ(caller("sk-1").meter, caller("sk-2").meter) << "one meter for all keys of a tenant";
}

TEST_F(Keys, OnceRequiredNothingGoesWithoutAKnownOne) {
  table_.replace({tenant("acme", {"sk-1"})}, true, kNever);
  EXPECT_EQ(std::get<KeyFault>(find("")), KeyFault::kNoKey);
  EXPECT_EQ(std::get<KeyFault>(find("sk-2")), KeyFault::kUnknownKey);
  EXPECT_EQ(std::get<KeyFault>(find("sk-1 ")), KeyFault::kUnknownKey);
}

TEST_F(Keys, WhereNoneIsRequiredAKnownOneStillNamesItsTenant) {
  table_.replace({tenant("acme", {"sk-1"})}, false, kNever);
  EXPECT_EQ(caller("sk-1").tenant->id, "acme");
  EXPECT_EQ(caller("sk-2").tenant->id, "");
}

TEST_F(Keys, AreOverAtTheirTime) {
  Tenant acme = tenant("acme", {"sk-1"});
  acme.keys[0].expires_at = kSomeDay + seconds(5);
  table_.replace({acme}, false, kNever);
  EXPECT_TRUE(std::holds_alternative<Caller>(find("sk-1", kSomeDay + seconds(4))));
  EXPECT_EQ(std::get<KeyFault>(find("sk-1", kSomeDay + seconds(5))), KeyFault::kExpired);
}

TEST_F(Keys, ARevokedOneStopsWithTheNextSet) {
  table_.replace({tenant("acme", {"sk-1", "sk-2"})}, true, kNever);
  EXPECT_EQ(caller("sk-1").tenant->id, "acme");
  table_.replace({tenant("acme", {"sk-2"})}, true, kNever);
  EXPECT_EQ(std::get<KeyFault>(find("sk-1")), KeyFault::kUnknownKey);
  EXPECT_EQ(caller("sk-2").tenant->id, "acme");
}

TEST_F(Keys, AMeterGoesOnFromOneSetToTheNext) {
  Tenant acme = tenant("acme", {"sk-1"});
  acme.limits.requests_per_minute = 2;
  table_.replace({acme}, true, kNever);
  const Caller before = caller("sk-1");
  EXPECT_TRUE(std::holds_alternative<TenantReservation>(
      before.meter->reserve(1, base::SteadyTime{}, kSomeDay)));
  acme.limits.requests_per_minute = 4;
  table_.replace({acme}, true, kNever);
  EXPECT_EQ(caller("sk-1").meter, before.meter);
  EXPECT_EQ(caller("sk-1").meter->rate_state(base::SteadyTime{}).requests->remaining, 1U);
  table_.replace({}, true, kNever);
  table_.replace({acme}, true, kNever);
  EXPECT_NE(caller("sk-1").meter, before.meter) << "one that was deleted begins anew";
}

TEST_F(Keys, ACallerKeepsItsTenantWhateverComes) {
  table_.replace({tenant("acme", {"sk-1"})}, true, kNever);
  const Caller before = caller("sk-1");
  table_.replace({}, true, kNever);
  EXPECT_EQ(before.tenant->id, "acme");
}

TEST_F(Keys, ManyThreadsReadWhileSetsAreReplaced) {
  table_.replace({tenant("acme", {"sk-1"})}, true, kNever);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      TenantReader reader(table_);
      for (int j = 0; j < 500; ++j) {
        const auto found = reader.find("sk-1", kSomeDay);
        ASSERT_TRUE(std::holds_alternative<Caller>(found));
        std::get<Caller>(found).meter->reserve(1, base::SteadyTime{}, kSomeDay);
      }
    });
  }
  for (int i = 0; i < 100; ++i) table_.replace({tenant("acme", {"sk-1"})}, true, kNever);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(caller("sk-1").meter->streams(), 0U);
}

TEST(KeyError, Is401AndNamesWhereAKeyGoes) {
  for (const KeyFault fault : {KeyFault::kNoKey, KeyFault::kUnknownKey, KeyFault::kExpired}) {
    const base::Error error = key_error(fault);
    EXPECT_EQ(error.status, 401U);
    EXPECT_EQ(error.type, "authentication_error");
    EXPECT_EQ(error.code, "invalid_api_key");
    EXPECT_FALSE(error.client_may_retry);
  }
  EXPECT_NE(key_error(KeyFault::kNoKey).message.find("Authorization"), std::string::npos);
}

TEST(Tenant, MayUseWhatItNamesAndAllWhereItNamesNothing) {
  Tenant acme{.id = "acme"};
  EXPECT_FALSE(acme.refuses("mini", "pirate@1"));
  acme.models = {"mini", "large"};
  acme.adapters = {"pirate"};
  EXPECT_FALSE(acme.refuses("mini", ""));
  EXPECT_FALSE(acme.refuses("large", "pirate@7"));
  const auto model = acme.refuses("huge", "");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->status, 403U);
  EXPECT_EQ(model->type, "permission_error");
  EXPECT_EQ(model->param, "model");
  EXPECT_NE(model->message.find("`huge`; it may use `mini`, `large`"), std::string::npos)
      << model->message;
  const auto adapter = acme.refuses("mini", "poet@1");
  ASSERT_TRUE(adapter);
  EXPECT_NE(adapter->message.find("`poet`"), std::string::npos) << adapter->message;
}

TEST(Tenant, ItsListHoldsForWhatStandsInForADeploymentOnceThatIsTold) {
  Tenant acme{.id = "acme", .models = {"mini", "large"}};
  EXPECT_TRUE(acme.lets_in("huge"));
  acme.fallbacks_listed = true;
  EXPECT_FALSE(acme.lets_in("huge"));
  EXPECT_TRUE(acme.lets_in("large"));
  acme.models.clear();
  EXPECT_TRUE(acme.lets_in("huge"));
}

TEST(Tenant, ARequestNamesNoHigherPriorityThanItsClass) {
  Tenant acme{.id = "acme"};
  EXPECT_EQ(acme.granted({}), Priority::kNormal);
  EXPECT_EQ(acme.granted(Priority::kHigh), Priority::kNormal);
  EXPECT_EQ(acme.granted(Priority::kLow), Priority::kLow);
  acme.priority = Priority::kHigh;
  EXPECT_EQ(acme.granted({}), Priority::kHigh);
  EXPECT_EQ(acme.granted(Priority::kNormal), Priority::kNormal);
}

}  // namespace
}  // namespace penstock::admission
