#include "routing/canary.h"

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

}  // namespace penstock::routing
