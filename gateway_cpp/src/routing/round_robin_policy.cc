#include "routing/round_robin_policy.h"

#include <algorithm>

namespace penstock::routing {

Replica* RoundRobinPolicy::choose(const Candidates& candidates) {
  const Preferences::Few few = candidates.preferred();
  Replica* chosen = least_of(few.all(), [](const Replica& replica) { return replica.note.pass; });
  if (chosen == nullptr) {
    chosen = by_pass_.least(candidates);
    if (chosen == nullptr) return nullptr;
    pass_ = std::max(pass_, chosen->note.pass);
  }
  chosen->note.pass += double{SlowStart::kFull} / chosen->share_tenths();
  chosen->note.chosen = ++choices_;
  by_pass_.put(*chosen, chosen->note.pass);
  return chosen;
}

void RoundRobinPolicy::update(Replica& replica) {
  if (!replica.standing().callable) {
    by_pass_.remove(replica);
  } else if (!by_pass_.contains(replica)) {
    replica.note.pass = std::max(replica.note.pass, pass_);
    by_pass_.put(replica, replica.note.pass);
  }
}

}  // namespace penstock::routing
