// Turns, one after the other; a replica that starts slowly has fewer of them. O(log replicas).
#pragma once

#include "routing/policy.h"
#include "routing/replica_heap.h"

namespace penstock::routing {

class RoundRobinPolicy final : public Policy {
 public:
  Replica* choose(const Candidates& candidates) override;
  std::string_view name() const override { return "round_robin"; }
  void update(Replica& replica) override;

 private:
  ReplicaHeap by_pass_;
  double pass_ = 0;  // of the newest turn: who comes, or comes back, has missed none
  std::uint64_t choices_ = 0;
};

}  // namespace penstock::routing
