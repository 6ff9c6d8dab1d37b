#include "routing/power_of_two_policy.h"

namespace penstock::routing {
namespace {

// One at random that the request may use and that is not `other`. Looks at a few more than are
// excluded at most.
Replica* any(const ReplicaList& pool, const Candidates& candidates, const Replica* other) {
  if (pool.size() == 0) return nullptr;
  const std::size_t start = candidates.random().below(pool.size());
  for (std::size_t i = start; i < pool.size(); ++i) {
    if (&pool[i] != other && !candidates.is_excluded(pool[i])) return &pool[i];
  }
  for (std::size_t i = 0; i < start; ++i) {
    if (&pool[i] != other && !candidates.is_excluded(pool[i])) return &pool[i];
  }
  return nullptr;
}

}  // namespace

Replica* better_of_two(const ReplicaList& pool, const Candidates& candidates) {
  Replica* first = any(pool, candidates, nullptr);
  if (first == nullptr) return nullptr;
  Replica* second = any(pool, candidates, first);
  if (second == nullptr) return first;
  return second->standing().score < first->standing().score ? second : first;
}

Replica* PowerOfTwoPolicy::choose(const Candidates& candidates) {
  const Preferences::Few few = candidates.preferred();
  Replica* preferred =
      least_of(few.all(), [](const Replica& replica) { return replica.standing().score; });
  return preferred != nullptr ? preferred : better_of_two(candidates.pool(), candidates);
}

}  // namespace penstock::routing
