#include "admission/shadow_class.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::admission {
namespace {

routing::ShadowRule rule_of(std::uint32_t share_permille, std::uint64_t seed = 7) {
  return {.uid = "u1", .candidate = "next", .seed = seed, .share_permille = share_permille};
}

ShadowAsk ask_of(std::string_view id, std::string_view session = {}) {
  return {.model = "mini",
          .request_id = id,
          .session = session,
          .tenant = "acme",
          .path = "/v1/chat/completions"};
}

TEST(ShadowClass, SamplesTheShareThatTheRuleSays) {
  const auto rule = rule_of(250);
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = "req_" + std::to_string(i);
    sampled += is_sampled(rule, "mini", ask_of(id)) ? 1 : 0;
  }
  EXPECT_NEAR(sampled, 2'500, 150);
}

TEST(ShadowClass, SamplesByTheSeedAlone) {
  const auto ask = ask_of("req_1");
  // As tests/fakes/shadow_share.py has it: the request's place is 947.
  EXPECT_FALSE(is_sampled(rule_of(947), "mini", ask));
  EXPECT_TRUE(is_sampled(rule_of(947 + 1), "mini", ask));
  auto rule = rule_of(1000);
  rule.self_permille = 159;
  EXPECT_FALSE(is_asked_again(rule, ask));
  ++rule.self_permille;
  EXPECT_TRUE(is_asked_again(rule, ask));
}

TEST(ShadowClass, SamplesNothingOfNoShareAndAllOfAWholeOne) {
  for (int i = 0; i < 100; ++i) {
    const std::string id = "req_" + std::to_string(i);
    EXPECT_FALSE(is_sampled(rule_of(0), "mini", ask_of(id)));
    EXPECT_TRUE(is_sampled(rule_of(1000), "mini", ask_of(id)));
  }
}

TEST(ShadowClass, SamplesWholeSessions) {
  auto rule = rule_of(924 + 1, 42);
  rule.by_session = true;
  EXPECT_TRUE(is_sampled(rule, "mini", ask_of("req_1", "conversation")));
  EXPECT_TRUE(is_sampled(rule, "mini", ask_of("req_2", "conversation")));
  --rule.share_permille;
  EXPECT_FALSE(is_sampled(rule, "mini", ask_of("req_1", "conversation")));
  EXPECT_FALSE(is_sampled(rule, "mini", ask_of("req_2", "conversation")));
}

TEST(ShadowClass, DrawsASessionsSelfArmForAllOfItsRequests) {
  auto rule = rule_of(1000, 42);
  rule.by_session = true;
  rule.self_permille = 500;
  int again = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string session = "conversation_" + std::to_string(i);
    const bool first = is_asked_again(rule, ask_of("req_1", session));
    EXPECT_EQ(is_asked_again(rule, ask_of("req_2", session)), first);
    again += first ? 1 : 0;
  }
  EXPECT_GT(again, 20);
  EXPECT_LT(again, 80);
}

TEST(ShadowClass, KeepsToTheNameThatTheRuleIsFor) {
  auto base = rule_of(1000);
  auto alias = rule_of(1000);
  alias.primary_alias = "pirate";
  const auto asks = [](std::string_view model) {
    auto ask = ask_of("req_1");
    ask.model = model;
    return ask;
  };
  EXPECT_TRUE(is_sampled(base, "mini", asks("mini")));
  EXPECT_FALSE(is_sampled(base, "mini", asks("mini:pirate")));
  EXPECT_TRUE(is_sampled(alias, "mini", asks("mini:pirate")));
  EXPECT_FALSE(is_sampled(alias, "mini", asks("mini")));
  EXPECT_FALSE(is_sampled(alias, "mini", asks("mini:pirate@1")));
}

TEST(ShadowClass, KeepsToTheTenantsAndEndpointsOfTheRule) {
  auto rule = rule_of(1000);
  rule.tenants = {"acme"};
  rule.endpoints = {"/v1/chat/completions"};
  EXPECT_TRUE(is_sampled(rule, "mini", ask_of("req_1")));
  rule.tenants = {"other"};
  EXPECT_FALSE(is_sampled(rule, "mini", ask_of("req_1")));
  rule.tenants = {};
  rule.endpoints = {"/v1/completions"};
  EXPECT_FALSE(is_sampled(rule, "mini", ask_of("req_1")));
}

TEST(ShadowClass, ShowsAProviderOnlyWhatItsTenantLetsItSee) {
  routing::DeploymentRoute ours;
  ours.name = "next";
  routing::DeploymentRoute theirs;
  theirs.name = "cloud";
  theirs.managed = true;
  const Tenant open{.id = "open"};
  const Tenant strict{.id = "strict", .degrade_never = true};
  const Tenant listed{.id = "listed", .models = {"mini"}};
  const Tenant never{.id = "never", .shadow_never = true};
  for (const Tenant* tenant : {&open, &strict, &listed}) {
    EXPECT_FALSE(is_kept_from(*tenant, true, ours)) << tenant->id;
  }
  EXPECT_FALSE(is_kept_from(open, true, theirs));
  EXPECT_TRUE(is_kept_from(open, false, theirs));
  EXPECT_TRUE(is_kept_from(strict, true, theirs));
  EXPECT_TRUE(is_kept_from(listed, true, theirs));
  EXPECT_TRUE(is_kept_from(never, true, ours));
}

}  // namespace
}  // namespace penstock::admission
