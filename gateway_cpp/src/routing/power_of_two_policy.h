// Two at random, the less loaded of them: nearly as even as the least loaded, and many gateways
// that know each other's calls late do not all run to the same replica. O(1).
#pragma once

#include "routing/policy.h"

namespace penstock::routing {

// Among those of the pool that the request may use; null: none. What a policy falls back to.
Replica* better_of_two(const ReplicaList& pool, const Candidates& candidates);

class PowerOfTwoPolicy final : public Policy {
 public:
  Replica* choose(const Candidates& candidates) override;
  std::string_view name() const override { return "power_of_two"; }
};

}  // namespace penstock::routing
