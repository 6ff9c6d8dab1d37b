#include "routing/least_loaded_policy.h"

#include <utility>

namespace penstock::routing {

Replica* LeastLoadedPolicy::choose(const Candidates& candidates) {
  const Preferences::Few few = candidates.preferred();
  Replica* chosen = least_of(few.all(), [](const Replica& replica) {
    return std::pair(replica.standing().score, replica.note.chosen);
  });
  if (chosen == nullptr) chosen = by_score_.least(candidates);
  if (chosen != nullptr) chosen->note.chosen = ++choices_;
  return chosen;
}

void LeastLoadedPolicy::update(Replica& replica) {
  if (replica.standing().callable) {
    by_score_.put(replica, replica.standing().score);
  } else {
    by_score_.remove(replica);
  }
}

}  // namespace penstock::routing
