#include "routing/canary.h"

#include <algorithm>

#include "routing/hashing.h"

namespace penstock::routing {

const CanaryWeight* canary_for(std::span<const CanaryWeight> weights, std::uint64_t hash) {
  if (weights.empty()) return nullptr;
  // Of its own: the share does not hang together with the places on a ring.
  constexpr std::uint64_t kSalt = 0x63616e617279U;
  std::uint64_t rest = mix(mix(hash) ^ kSalt) % 1000;
  for (const CanaryWeight& weight : weights) {
    if (rest < weight.permille) return &weight;
    rest -= weight.permille;
  }
  return nullptr;
}

const CanaryRule* rule_for(const DeploymentRoute& deployment, std::string_view model) {
  const auto find = [&deployment](std::string_view alias) {
    const auto& rules = deployment.canary_rules;
    const auto found = std::ranges::find(rules, alias, &CanaryRule::alias);
    return found == rules.end() ? nullptr : &*found;
  };
  const bool names_more = model.size() > deployment.name.size() + 1;
  const CanaryRule* own = names_more ? find(model.substr(deployment.name.size() + 1)) : nullptr;
  return own != nullptr ? own : find({});
}

}  // namespace penstock::routing
