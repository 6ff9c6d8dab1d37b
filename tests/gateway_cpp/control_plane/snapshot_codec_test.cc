#include "control_plane/snapshot_codec.h"

#include <gtest/gtest.h>

#include "fake_head.h"

namespace penstock::control_plane {
namespace {

TEST(SnapshotCodec, KeepsEveryFieldThatRoutingKnows) {
  penstock::v1::RouteSnapshot wire = snapshot_of(9, "mini");
  wire.mutable_deployments(0)->clear_limits();
  wire.mutable_deployments(0)->set_selection_policy("session");
  auto& canary = *wire.mutable_deployments(0)->add_canary();
  canary.set_deployment("mini-next");
  canary.set_permille(50);
  canary.set_template_digest("digest-2");
  wire.mutable_deployments(0)->set_session_affinity("revision");
  wire.mutable_deployments(0)->mutable_slo()->set_ttft_p50_ms(800);
  wire.mutable_deployments(0)->mutable_slo()->set_error_rate(0.02F);
  wire.mutable_deployments(0)->set_generation(7);
  wire.mutable_deployments(0)->set_uid("uid-1");
  wire.mutable_deployments(0)->set_availability(penstock::v1::AVAILABILITY_LOADING);
  wire.mutable_deployments(0)->set_availability_detail("it starts");
  wire.mutable_deployments(0)->set_expected_ready_at_ms(8);
  wire.mutable_deployments(0)->add_endpoints("/v1/completions");
  wire.mutable_replicas(0)->set_deployment_uid("uid-1");
  wire.mutable_replicas(0)->set_node("node-1");
  wire.mutable_replicas(0)->set_zone("zone-1");
  wire.mutable_replicas(0)->set_own_token(true);
  wire.mutable_replicas(0)->set_template_digest("digest-1");
  const routing::RouteSnapshot expected{
      .version = 9,
      .deployments = {{.name = "mini",
                       .model = "weights/mini",
                       .created = 1700000000,
                       .max_model_len = 2048,
                       .adapters = {{"pirate", "pirate@1"}},
                       .limits = {},
                       .generation = 7,
                       .uid = "uid-1",
                       .availability = base::Availability::kLoading,
                       .availability_detail = "it starts",
                       .expected_ready_at = base::WallTime(std::chrono::milliseconds(8)),
                       .endpoints = {"/v1/completions"},
                       .selection_policy = "session",
                       .keeps_sessions = true,
                       .canary = {{"mini-next", 50, "digest-2"}},
                       .slo = {.ttft = std::chrono::milliseconds(800), .errors = true}}},
      .replicas = {{.id = {"mini-1"},
                    .deployment = "mini",
                    .address = "127.0.0.1:1",
                    .state = routing::ReplicaState::kReady,
                    .capacity = 4,
                    .adapters = {"pirate@1"},
                    .deployment_uid = "uid-1",
                    .node = "node-1",
                    .zone = "zone-1",
                    .own_token = true,
                    .template_digest = "digest-1"}}};
  EXPECT_EQ(from_proto(wire), expected);
}

TEST(SnapshotCodec, KnowsAProgramAndWhatReplicasAreFor) {
  penstock::v1::RouteSnapshot wire = snapshot_of(9, "mini");
  EXPECT_FALSE(from_proto(wire).deployments[0].program);
  auto& program = *wire.mutable_deployments(0)->mutable_program();
  program.set_digest("digest-3");
  program.set_name("data_parallel");
  program.set_args(R"({"a":1})");
  program.add_uses("lookup");
  program.set_sees_tokens(true);
  program.set_deadline_ms(5);
  wire.mutable_replicas(0)->set_role("decode");
  wire.mutable_replicas(0)->set_microserving(true);
  const auto snapshot = from_proto(wire);
  const routing::Program expected{.digest = "digest-3",
                                  .name = "data_parallel",
                                  .args = R"({"a":1})",
                                  .uses = {"lookup"},
                                  .sees_tokens = true,
                                  .deadline = std::chrono::milliseconds(5)};
  EXPECT_EQ(snapshot.deployments[0].program, expected);
  EXPECT_EQ(snapshot.replicas[0].role, routing::Role::kDecode);
  EXPECT_TRUE(snapshot.replicas[0].microserving);
}

TEST(SnapshotCodec, KeepsWhatIsRepeatedWithItsPrimary) {
  auto wire = snapshot_of(1, "mini");
  wire.set_comparer_address("127.0.0.1:9");
  penstock::v1::ShadowRule& rule = *wire.add_shadows();
  rule.set_uid("u1");
  rule.set_name("next");
  rule.set_primary("mini");
  rule.set_primary_alias("pirate");
  rule.set_candidate("big");
  rule.set_candidate_adapter("pirate@2");
  rule.set_seed(7);
  rule.set_share_permille(8);
  rule.set_by_session(true);
  rule.add_tenants("acme");
  rule.add_endpoints("/v1/completions");
  rule.set_max_concurrent(9);
  rule.set_max_per_minute(10);
  rule.set_self_permille(11);
  rule.set_cache_salt("salt");
  rule.set_nanousd_per_day(12);
  rule.set_budget_used_up(true);
  rule.set_embedder("embed");
  rule.set_judge("huge");
  wire.add_shadows()->set_primary("gone");
  const auto snapshot = from_proto(wire);
  EXPECT_EQ(snapshot.comparer, "127.0.0.1:9");
  const std::vector<routing::ShadowRule> expected = {{.uid = "u1",
                                                      .name = "next",
                                                      .primary_alias = "pirate",
                                                      .candidate = "big",
                                                      .candidate_adapter = "pirate@2",
                                                      .seed = 7,
                                                      .share_permille = 8,
                                                      .by_session = true,
                                                      .tenants = {"acme"},
                                                      .endpoints = {"/v1/completions"},
                                                      .max_concurrent = 9,
                                                      .max_per_minute = 10,
                                                      .self_permille = 11,
                                                      .cache_salt = "salt",
                                                      .nanousd_per_day = 12,
                                                      .budget_used_up = true,
                                                      .embedder = "embed",
                                                      .judge = "huge"}};
  EXPECT_EQ(snapshot.deployments.at(0).shadows, expected);
}

penstock::v1::CanaryRule& add_rule(penstock::v1::RouteSnapshot& wire) {
  penstock::v1::CanaryRule& rule = *wire.add_canaries();
  rule.set_uid("u1");
  rule.set_name("next");
  rule.set_step(2);
  rule.set_deployment("mini");
  rule.set_permille(10);
  rule.set_warmup_requests(20);
  return rule;
}

TEST(SnapshotCodec, KeepsCanariesWithTheirTarget) {
  auto wire = snapshot_of(1, "mini");
  add_rule(wire).set_candidate("big");
  penstock::v1::CanaryRule& of_alias = add_rule(wire);
  of_alias.set_uid("u2");
  of_alias.set_alias("pirate");
  of_alias.set_stable_adapter("pirate@1");
  of_alias.set_candidate_adapter("pirate@2");
  const std::vector<routing::CanaryRule> expected = {
      {.uid = "u1", .name = "next", .step = 2, .candidate = "big", .warmup_requests = 20},
      {.uid = "u2",
       .name = "next",
       .step = 2,
       .alias = "pirate",
       .candidate_adapter = "pirate@2",
       .stable_adapter = "pirate@1",
       .warmup_requests = 20}};
  EXPECT_EQ(from_proto(wire).deployments.at(0).canary_rules, expected);
}

TEST(SnapshotCodec, LeavesOutCanariesThatMakeNoSense) {
  using Rule = penstock::v1::CanaryRule;
  const std::vector<void (*)(Rule&)> spoils = {
      [](Rule& rule) { rule.clear_uid(); },
      [](Rule& rule) { rule.clear_step(); },
      [](Rule& rule) { rule.set_deployment("gone"); },
      [](Rule& rule) { rule.clear_candidate_digest(); },
      [](Rule& rule) { rule.set_candidate("big"); },  // and a digest
      [](Rule& rule) { rule.set_alias("pirate"); },
      [](Rule& rule) { rule.set_stable_adapter("pirate@1"); },
      [](Rule& rule) { rule.set_permille(1001); }};
  for (const auto& spoil : spoils) {
    auto wire = snapshot_of(1, "mini");
    Rule& rule = add_rule(wire);
    rule.set_candidate_digest("abc");
    spoil(rule);
    EXPECT_TRUE(from_proto(wire).deployments.at(0).canary_rules.empty()) << rule.DebugString();
  }
  auto wire = snapshot_of(1, "mini");
  for (const auto* candidate : {"big", "bigger"}) add_rule(wire).set_candidate(candidate);
  const auto snapshot = from_proto(wire);
  const auto& rules = snapshot.deployments.at(0).canary_rules;
  ASSERT_EQ(rules.size(), 1U);  // the other one has the same target
  EXPECT_EQ(rules.at(0).candidate, "big");
}

TEST(SnapshotCodec, KeepsWhatAdaptersAreNamedBy) {
  penstock::v1::RouteSnapshot wire = snapshot_of(9, "mini");
  wire.mutable_deployments(0)->set_base_family("mini-family");
  auto& alias = *wire.mutable_deployments(0)->mutable_aliases(0);
  for (const char* name : {"pirate@2", "pirate@1"}) {
    auto& share = *alias.add_shares();
    share.set_adapter(name);
    share.set_weight(name[7] == '1' ? 90 : 10);
  }
  auto& version = *wire.add_adapters();
  version.set_name("pirate@1");
  version.set_digest("abc");
  version.set_base_family("mini-family");
  version.set_created(7);
  const routing::RouteSnapshot snapshot = from_proto(wire);
  EXPECT_EQ(snapshot.deployments[0].base_family, "mini-family");
  EXPECT_EQ(snapshot.deployments[0].adapters[0],
            (routing::AdapterAlias{"pirate", "pirate@1", {{"pirate@1", 90}, {"pirate@2", 10}}}));
  EXPECT_EQ(snapshot.adapters,
            (std::vector<routing::AdapterVersion>{{"pirate@1", "abc", "mini-family", 7}}));
}

TEST(SnapshotCodec, KeepsWhatIsTriedInPlaceOfAnAnswer) {
  penstock::v1::RouteSnapshot wire = snapshot_of(9, "mini");
  auto& deployment = *wire.mutable_deployments(0);
  deployment.set_managed(true);
  deployment.set_trims(true);
  deployment.set_without_tools(true);
  deployment.set_budget_used_up(true);
  deployment.set_budget_resets_at_ms(5);
  deployment.set_budget_tokens_per_day(6);
  deployment.set_budget_nanousd_per_day(7);
  deployment.mutable_prices()->set_input(0.5);
  deployment.mutable_prices()->set_output(2);
  deployment.mutable_prices()->set_cached(0.25);
  auto& ladder = *deployment.add_ladders();
  for (const char* rung : {"trim", "fallback:next", "pray", "reject"}) ladder.add_rungs(rung);
  deployment.add_ladders()->set_reason("budget");
  const routing::DeploymentRoute read = from_proto(wire).deployments[0];
  EXPECT_TRUE(read.managed && read.trims && read.without_tools && read.budget_used_up);
  EXPECT_EQ(read.prices, (routing::Prices{0.5, 2, 0.25}));
  EXPECT_EQ(read.budget_tokens, 6U);
  EXPECT_EQ(read.budget_nanousd, 7U);
  EXPECT_EQ(read.budget_resets_at, base::WallTime(std::chrono::milliseconds(5)));
  using Kind = routing::Rung::Kind;
  const std::vector<routing::Ladder> expected = {
      {"", {{Kind::kTrim}, {Kind::kFallback, "next"}, {Kind::kReject}}}, {"budget", {}}};
  EXPECT_EQ(read.ladders, expected) << "what a newer head knows is passed over";
}

TEST(SnapshotCodec, KeepsEveryLimit) {
  penstock::v1::RouteSnapshot wire = snapshot_of(1, "mini");
  auto& limits = *wire.mutable_deployments(0)->mutable_limits();
  limits.set_max_ongoing(3);
  limits.set_max_queued(4);
  limits.set_queue_deadline_ms(5);
  limits.set_first_event_deadline_ms(6);
  limits.set_wait_budget_ms(11);
  limits.set_kv_pressure(0.5F);
  limits.set_max_prompt_tokens(12);
  limits.set_max_completion_tokens(13);
  limits.set_max_n(14);
  limits.set_progress_deadline_ms(15);
  const routing::Limits expected{.max_ongoing = 3,
                                 .max_queued = 4,
                                 .queue_deadline = std::chrono::milliseconds(5),
                                 .first_event_deadline = std::chrono::milliseconds(6),
                                 .wait_budget = std::chrono::milliseconds(11),
                                 .kv_pressure = 0.5F,
                                 .max_prompt_tokens = 12,
                                 .max_completion_tokens = 13,
                                 .max_n = 14,
                                 .progress_deadline = std::chrono::milliseconds(15)};
  EXPECT_EQ(from_proto(wire).deployments[0].limits, expected);
}

TEST(SnapshotCodec, ADeploymentWithoutLimitsGetsTheDefaults) {
  penstock::v1::RouteSnapshot wire = snapshot_of(1, "mini");
  wire.mutable_deployments(0)->clear_limits();
  const routing::Limits limits = from_proto(wire).deployments[0].limits;
  EXPECT_EQ(limits.max_ongoing, 0U);
  EXPECT_EQ(limits.max_queued, 100U);
  EXPECT_EQ(limits.queue_deadline, std::chrono::seconds(30));
  EXPECT_EQ(limits.wait_budget, std::chrono::seconds(0));
  EXPECT_FLOAT_EQ(limits.kv_pressure, 0.93F);
  EXPECT_EQ(limits.max_n, 16U);
}

TEST(SnapshotCodec, AZeroThatIsSaidIsNotADefault) {
  penstock::v1::RouteSnapshot wire = snapshot_of(1, "mini");
  wire.mutable_deployments(0)->mutable_limits();
  const routing::Limits limits = from_proto(wire).deployments[0].limits;
  EXPECT_EQ(limits.max_queued, 0U);
  EXPECT_EQ(limits.queue_deadline, std::chrono::seconds(0));
  EXPECT_FLOAT_EQ(limits.kv_pressure, 0.0F);
}

TEST(SnapshotCodec, OnlyAReplicaSaidToBeReadyIsReady) {
  penstock::v1::RouteSnapshot wire = snapshot_of(1, "mini");
  const auto state_of = [&wire](int state) {
    wire.mutable_replicas(0)->set_state(static_cast<penstock::v1::ReplicaState>(state));
    return from_proto(wire).replicas[0].state;
  };
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_READY), routing::ReplicaState::kReady);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_DRAINING), routing::ReplicaState::kDraining);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_STARTING), routing::ReplicaState::kStarting);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_UNSPECIFIED), routing::ReplicaState::kStarting);
  EXPECT_EQ(state_of(77), routing::ReplicaState::kStarting);
}

}  // namespace
}  // namespace penstock::control_plane
