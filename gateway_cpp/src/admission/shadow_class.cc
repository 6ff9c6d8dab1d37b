#include "admission/shadow_class.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "routing/hashing.h"

namespace penstock::admission {
namespace {

constexpr std::array<std::string_view, kShadowOutcomes> kShadowNames = {
    "paired", "body_budget",    "rate",        "concurrency", "candidate_busy", "preempted",
    "budget", "not_comparable", "not_allowed", "no_comparer", "overload"};

constexpr std::uint64_t kPerMille = 1000;

// Of a share: the same for all requests of a session where the rule samples those.
std::uint64_t place_of(const routing::ShadowRule& rule, const ShadowAsk& ask) {
  const bool by_session = rule.by_session && !ask.session.empty();
  const std::uint64_t name = routing::hash_text(by_session ? ask.session : ask.request_id);
  return routing::mix(name ^ routing::mix(rule.seed));
}

bool names(const std::vector<std::string>& list, std::string_view one) {
  return list.empty() || std::ranges::find(list, one) != list.end();
}

// "deployment" or "deployment:alias", as the rule has it.
bool is_primary(const routing::ShadowRule& rule, std::string_view primary, std::string_view model) {
  const std::string& alias = rule.primary_alias;
  if (!model.starts_with(primary)) return false;
  model.remove_prefix(primary.size());
  return alias.empty() ? model.empty() : model.starts_with(':') && model.substr(1) == alias;
}

}  // namespace

std::string_view name(ShadowOutcome outcome) {
  return kShadowNames[static_cast<std::size_t>(outcome)];
}

bool is_sampled(const routing::ShadowRule& rule, std::string_view primary, const ShadowAsk& ask) {
  return is_primary(rule, primary, ask.model) &&
         place_of(rule, ask) % kPerMille < rule.share_permille && names(rule.tenants, ask.tenant) &&
         names(rule.endpoints, ask.path);
}

bool is_asked_again(const routing::ShadowRule& rule, const ShadowAsk& ask) {
  return routing::mix(place_of(rule, ask)) % kPerMille < rule.self_permille;
}

bool is_kept_from(const Tenant& tenant, bool may_degrade, const routing::DeploymentRoute& there) {
  if (tenant.shadow_never) return true;
  if (!there.managed) return false;
  return tenant.degrade_never || !may_degrade || !names(tenant.models, there.name);
}

}  // namespace penstock::admission
