// The replica with the smallest load for its places; equal ones take turns. O(log replicas).
#pragma once

#include "routing/policy.h"
#include "routing/replica_heap.h"

namespace penstock::routing {

class LeastLoadedPolicy final : public Policy {
 public:
  Replica* choose(const Candidates& candidates) override;
  std::string_view name() const override { return "least_loaded"; }
  void update(Replica& replica) override;

 private:
  ReplicaHeap by_score_;
  std::uint64_t choices_ = 0;
};

}  // namespace penstock::routing
