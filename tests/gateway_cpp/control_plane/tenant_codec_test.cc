#include "control_plane/tenant_codec.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::control_plane {
namespace {

base::WallTime ms(std::int64_t value) { return base::WallTime(std::chrono::milliseconds(value)); }

penstock::v1::Tenant& add_tenant(penstock::v1::RouteSnapshot& snapshot, const std::string& id) {
  penstock::v1::Tenant& tenant = *snapshot.add_tenants();
  tenant.set_id(id);
  return tenant;
}

admission::ApiKey key_of(const std::string& key) {
  return {.id = key, .sha256 = admission::KeyHasher()(key)};
}

TEST(TenantCodec, KeepsEveryFieldThatAdmissionKnows) {
  penstock::v1::RouteSnapshot snapshot;
  penstock::v1::Tenant& wire = add_tenant(snapshot, "acme");
  wire.set_requests_per_minute(60);
  wire.set_tokens_per_minute(9000);
  wire.add_models("mini");
  wire.add_adapters("pirate");
  wire.set_max_streams(7);
  wire.set_priority(penstock::v1::PRIORITY_CLASS_HIGH);
  wire.set_cache_salt("salt");
  wire.set_degrade_never(true);
  wire.set_fallbacks_listed(true);
  wire.set_shadow_never(true);
  wire.set_share_permille(500);
  wire.set_max_streams_here(3);
  wire.set_tokens_per_day(1ULL << 40);
  wire.set_nanousd_per_day(77);
  wire.set_quota_used_up(true);
  wire.set_quota_resets_at_ms(1234);
  penstock::v1::ApiKey& key = *wire.add_keys();
  key.set_id("key-1");
  key.set_sha256(std::string(32, 'h'));
  key.set_expires_at_ms(99);
  key.set_tokens_per_day(5);
  key.set_nanousd_per_day(6);

  admission::Tenant expected{.id = "acme",
                             .limits = {.requests_per_minute = 60,
                                        .tokens_per_minute = 9000,
                                        .max_streams = 7,
                                        .share_permille = 500,
                                        .max_streams_here = 3,
                                        .per_day = {.tokens = 1ULL << 40, .nanousd = 77},
                                        .quota_used_up = true,
                                        .quota_resets_at = ms(1234)},
                             .models = {"mini"},
                             .adapters = {"pirate"},
                             .priority = base::Priority::kHigh,
                             .cache_salt = "salt",
                             .degrade_never = true,
                             .fallbacks_listed = true,
                             .shadow_never = true};
  expected.keys.push_back({.id = "key-1", .expires_at = ms(99), .per_day = {5, 6}});
  expected.keys[0].sha256.fill('h');
  EXPECT_EQ(tenants_of(snapshot), std::vector{expected});
}

TEST(TenantCodec, TellsWhatTenantsWithALimitOfStreamsHaveUnderWay) {
  admission::TenantTable table;
  table.replace({{.id = "limited", .limits = {.max_streams = 5}, .keys = {key_of("a")}},
                 {.id = "idle", .limits = {.max_streams = 5}},
                 {.id = "free", .keys = {key_of("b")}}},
                false, {});
  const auto current = table.current();
  std::vector<std::variant<admission::TenantReservation, admission::Refusal>> under_way;
  for (const char* key : {"a", "a", "b"}) {
    const auto caller = std::get<admission::Caller>(current->find(key_of(key).sha256, {}));
    under_way.push_back(caller.meter->reserve(1, {}, {}));
  }
  penstock::v1::GatewayReport report;
  add_streams(*current, report);
  ASSERT_EQ(report.streams_size(), 1);
  EXPECT_EQ(report.streams(0).tenant(), "limited");
  EXPECT_EQ(report.streams(0).under_way(), 2U);
}

TEST(TenantCodec, WhatIsNotSaidIsNoLimitAndNormal) {
  penstock::v1::RouteSnapshot snapshot;
  add_tenant(snapshot, "acme");
  EXPECT_EQ(tenants_of(snapshot), std::vector{admission::Tenant{.id = "acme"}});
}

TEST(TenantCodec, AnUnknownPriorityIsNormal) {
  penstock::v1::RouteSnapshot snapshot;
  add_tenant(snapshot, "acme").set_priority(static_cast<penstock::v1::PriorityClass>(99));
  EXPECT_EQ(tenants_of(snapshot).at(0).priority, base::Priority::kNormal);
}

TEST(TenantCodec, LeavesOutWhatCanBeNoKeyAndNoTenant) {
  penstock::v1::RouteSnapshot snapshot;
  add_tenant(snapshot, "acme").add_keys()->set_sha256("short");
  add_tenant(snapshot, "");
  const auto tenants = tenants_of(snapshot);
  ASSERT_EQ(tenants.size(), 1U);
  EXPECT_TRUE(tenants[0].keys.empty());
}

}  // namespace
}  // namespace penstock::control_plane
