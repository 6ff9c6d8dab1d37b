#include "control_plane/snapshot_codec.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace penstock::control_plane {
namespace {

using std::chrono::milliseconds;

// A state that this gateway does not know may not be sent requests.
routing::ReplicaState state_from(penstock::v1::ReplicaState state) {
  switch (state) {
    case penstock::v1::REPLICA_STATE_READY:
      return routing::ReplicaState::kReady;
    case penstock::v1::REPLICA_STATE_DRAINING:
      return routing::ReplicaState::kDraining;
    default:
      return routing::ReplicaState::kStarting;
  }
}

// One that a newer head may know is looked up in the replicas.
base::Availability availability_from(penstock::v1::Availability availability) {
  const bool is_known = availability >= 0 && availability <= penstock::v1::AVAILABILITY_FAILED;
  return is_known ? static_cast<base::Availability>(availability) : base::Availability::kUnknown;
}
static_assert(static_cast<int>(base::Availability::kFailed) == penstock::v1::AVAILABILITY_FAILED);

routing::Limits limits_from(const penstock::v1::Limits& wire) {
  return {.max_ongoing = wire.max_ongoing(),
          .max_queued = wire.max_queued(),
          .queue_deadline = milliseconds(wire.queue_deadline_ms()),
          .first_event_deadline = milliseconds(wire.first_event_deadline_ms()),
          .wait_budget = milliseconds(wire.wait_budget_ms()),
          .kv_pressure = wire.kv_pressure(),
          .max_prompt_tokens = wire.max_prompt_tokens(),
          .max_completion_tokens = wire.max_completion_tokens(),
          .max_n = wire.max_n(),
          .progress_deadline = milliseconds(wire.progress_deadline_ms()),
          .resume = wire.resume(),
          .resume_wait = milliseconds(wire.resume_wait_ms())};
}

// In the order by which sessions are shared out, whatever the head's.
routing::AdapterAlias alias_from(const penstock::v1::AdapterAlias& wire) {
  routing::AdapterAlias alias{.alias = wire.alias(), .adapter = wire.adapter()};
  for (const auto& share : wire.shares()) alias.shares.push_back({share.adapter(), share.weight()});
  std::ranges::sort(alias.shares, {}, &routing::AdapterShare::adapter);
  return alias;
}

// One that this gateway does not know is left out: the next one is tried.
std::optional<routing::Rung> rung_from(std::string_view text) {
  using Kind = routing::Rung::Kind;
  constexpr std::string_view kFallback = "fallback:";
  if (text == "trim") return routing::Rung{.kind = Kind::kTrim};
  if (text == "reject") return routing::Rung{.kind = Kind::kReject};
  if (!text.starts_with(kFallback)) return std::nullopt;
  return routing::Rung{.kind = Kind::kFallback,
                       .deployment = std::string(text.substr(kFallback.size()))};
}

routing::Ladder ladder_from(const penstock::v1::Ladder& wire) {
  routing::Ladder ladder{.reason = wire.reason(), .rungs = {}};
  for (const auto& text : wire.rungs()) {
    if (auto rung = rung_from(text)) ladder.rungs.push_back(*std::move(rung));
  }
  return ladder;
}

// A deadline that is not told is the usual one.
std::optional<routing::Program> program_from(const penstock::v1::DeploymentRoute& wire) {
  if (!wire.has_program() || wire.program().digest().empty()) return std::nullopt;
  const auto& told = wire.program();
  routing::Program program{.digest = told.digest(),
                           .name = told.name(),
                           .args = told.args(),
                           .uses = {told.uses().begin(), told.uses().end()},
                           .sees_tokens = told.sees_tokens()};
  if (told.deadline_ms() > 0) program.deadline = milliseconds(told.deadline_ms());
  if (told.transfer_deadline_ms() > 0) {
    program.transfer_deadline = milliseconds(told.transfer_deadline_ms());
  }
  return program;
}

// One that a newer head may know is none here.
routing::Role role_from(std::string_view text) {
  if (text == "prefill") return routing::Role::kPrefill;
  return text == "decode" ? routing::Role::kDecode : routing::Role::kNone;
}

routing::DeploymentRoute deployment_from(const penstock::v1::DeploymentRoute& wire) {
  routing::DeploymentRoute deployment{
      .name = wire.name(),
      .model = wire.model(),
      .created = wire.created(),
      .max_model_len = wire.max_model_len(),
      .adapters = {},
      .limits = wire.has_limits() ? limits_from(wire.limits()) : routing::Limits{},
      .generation = wire.generation(),
      .uid = wire.uid(),
      .availability = availability_from(wire.availability()),
      .availability_detail = wire.availability_detail(),
      .expected_ready_at = base::from_unix_ms(wire.expected_ready_at_ms()),
      .endpoints = {wire.endpoints().begin(), wire.endpoints().end()},
      .selection_policy = wire.selection_policy(),
      .keeps_sessions = wire.session_affinity() == "revision",
      .base_family = wire.base_family(),
      .managed = wire.managed(),
      .trims = wire.trims(),
      .without_tools = wire.without_tools(),
      .budget_used_up = wire.budget_used_up(),
      .budget_resets_at = base::from_unix_ms(wire.budget_resets_at_ms()),
      .budget_tokens = wire.budget_tokens_per_day(),
      .budget_nanousd = wire.budget_nanousd_per_day(),
      .prices = {wire.prices().input(), wire.prices().output(), wire.prices().cached()},
      .shadows = {},
      .canary_rules = {},
      .slo = {milliseconds(wire.slo().ttft_p50_ms()), milliseconds(wire.slo().total_p99_ms()),
              wire.slo().error_rate() > 0},
      .program = program_from(wire)};
  for (const auto& alias : wire.aliases()) deployment.adapters.push_back(alias_from(alias));
  for (const auto& weight : wire.canary()) {
    deployment.canary.push_back({weight.deployment(), weight.permille(), weight.template_digest()});
  }
  for (const auto& ladder : wire.ladders()) deployment.ladders.push_back(ladder_from(ladder));
  return deployment;
}

routing::ShadowRule shadow_from(const penstock::v1::ShadowRule& wire) {
  return {.uid = wire.uid(),
          .name = wire.name(),
          .primary_alias = wire.primary_alias(),
          .candidate = wire.candidate(),
          .candidate_adapter = wire.candidate_adapter(),
          .seed = wire.seed(),
          .share_permille = wire.share_permille(),
          .by_session = wire.by_session(),
          .tenants = {wire.tenants().begin(), wire.tenants().end()},
          .endpoints = {wire.endpoints().begin(), wire.endpoints().end()},
          .max_concurrent = wire.max_concurrent(),
          .max_per_minute = wire.max_per_minute(),
          .self_permille = wire.self_permille(),
          .cache_salt = wire.cache_salt(),
          .nanousd_per_day = wire.nanousd_per_day(),
          .budget_used_up = wire.budget_used_up(),
          .embedder = wire.embedder(),
          .judge = wire.judge()};
}

// Whether it says of one target who is the candidate, and of which run its counts are.
bool makes_sense(const routing::CanaryRule& rule, std::uint32_t permille) {
  constexpr std::uint32_t kWhole = 1000;
  const int candidates = static_cast<int>(!rule.candidate.empty()) +
                         static_cast<int>(!rule.candidate_adapter.empty()) +
                         static_cast<int>(!rule.candidate_digest.empty());
  const bool is_of_alias = !rule.alias.empty();
  return !rule.uid.empty() && rule.step > 0 && permille <= kWhole && candidates == 1 &&
         rule.candidate_adapter.empty() != is_of_alias &&
         rule.stable_adapter.empty() != is_of_alias;
}

routing::CanaryRule canary_from(const penstock::v1::CanaryRule& wire) {
  return {.uid = wire.uid(),
          .name = wire.name(),
          .step = wire.step(),
          .alias = wire.alias(),
          .candidate = wire.candidate(),
          .candidate_adapter = wire.candidate_adapter(),
          .candidate_digest = wire.candidate_digest(),
          .stable_adapter = wire.stable_adapter(),
          .warmup_requests = wire.warmup_requests()};
}

// One that makes no sense is left out, as is a second one of the same target: the head hears
// nothing of it, and goes on with nothing.
void add_canary(const penstock::v1::CanaryRule& wire, routing::RouteSnapshot& snapshot) {
  const auto target =
      std::ranges::find(snapshot.deployments, wire.deployment(), &routing::DeploymentRoute::name);
  if (target == snapshot.deployments.end()) return;
  routing::CanaryRule rule = canary_from(wire);
  const bool is_second =
      std::ranges::find(target->canary_rules, rule.alias, &routing::CanaryRule::alias) !=
      target->canary_rules.end();
  if (makes_sense(rule, wire.permille()) && !is_second)
    target->canary_rules.push_back(std::move(rule));
}

routing::ReplicaRoute replica_from(const penstock::v1::ReplicaRoute& wire) {
  return {.id = {wire.id()},
          .deployment = wire.deployment(),
          .address = wire.address(),
          .state = state_from(wire.state()),
          .capacity = wire.capacity(),
          .adapters = {wire.adapters().begin(), wire.adapters().end()},
          .deployment_uid = wire.deployment_uid(),
          .node = wire.node(),
          .zone = wire.zone(),
          .own_token = wire.own_token(),
          .wakes = wire.wakes(),
          .template_digest = wire.template_digest(),
          .role = role_from(wire.role()),
          .microserving = wire.microserving(),
          .hand_over_at = base::from_unix_ms(wire.hand_over_at_ms())};
}

}  // namespace

routing::RouteSnapshot from_proto(const penstock::v1::RouteSnapshot& wire) {
  routing::RouteSnapshot snapshot{.version = wire.version(), .deployments = {}, .replicas = {}};
  for (const auto& deployment : wire.deployments()) {
    snapshot.deployments.push_back(deployment_from(deployment));
  }
  for (const auto& rule : wire.shadows()) {
    const auto primary =
        std::ranges::find(snapshot.deployments, rule.primary(), &routing::DeploymentRoute::name);
    if (primary != snapshot.deployments.end()) primary->shadows.push_back(shadow_from(rule));
  }
  for (const auto& rule : wire.canaries()) add_canary(rule, snapshot);
  for (const auto& replica : wire.replicas()) {
    snapshot.replicas.push_back(replica_from(replica));
  }
  for (const auto& adapter : wire.adapters()) {
    snapshot.adapters.push_back(
        {adapter.name(), adapter.digest(), adapter.base_family(), adapter.created()});
  }
  snapshot.ended_keys = {wire.ended_keys().begin(), wire.ended_keys().end()};
  snapshot.comparer = wire.comparer_address();
  for (const auto& lost : wire.lost_accelerators()) {
    snapshot.lost_accelerators.push_back({lost.node(), lost.detail()});
  }
  return snapshot;
}

}  // namespace penstock::control_plane
