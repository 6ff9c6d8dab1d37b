// What is told of a choice: who was looked at, and why each was taken or was not.
#include <algorithm>

#include "routing/replica_set.h"

namespace penstock::routing {

// Of a few replicas those that could not be called are told as well, which no policy looks at.
void ReplicaSet::tell(const Replica& chosen, const Traits& traits, const Candidates::Filter& filter,
                      Pick& pick) const {
  const Looks& looks = *filter.looks;
  pick.begin(traits.continues != 0 ? kByResume : looks.by);
  pick.add(chosen.id().value, chosen.standing().load, Verdict::kTaken);
  const auto add = [&](const Replica& other) {
    pick.add(other.id().value, other.standing().load, verdict_on(other, traits, filter));
  };
  for (const Replica* one : looks) {
    if (one != &chosen) add(*one);
  }
  if (callable_.size() < members_.size() && members_.size() <= Pick::kMost) {
    for (const auto& member : members_) {
      const bool is_told = member.get() == &chosen || std::ranges::count(looks, member.get()) > 0;
      if (!is_told && !member->standing().callable) add(*member);
    }
  }
  pick.more = static_cast<std::uint32_t>(members_.size() - pick.size());
}

Verdict ReplicaSet::verdict_on(const Replica& replica, const Traits& traits,
                               const Candidates::Filter& filter) {
  const Standing& standing = replica.standing();
  if (replica.leaves_ || replica.route().state == ReplicaState::kDraining) {
    return Verdict::kDraining;
  }
  if (!standing.ready) return Verdict::kNotReady;
  if (std::ranges::count(filter.excluded, &replica) > 0) return Verdict::kTried;
  if (!standing.sound && !standing.callable) return Verdict::kDoubted;
  if (traits.continues != 0 && standing.continues != traits.continues) return Verdict::kUnequal;
  const bool is_of_another =
      filter.revisions != nullptr && !filter.revisions->allows(filter.wish, replica);
  if (is_of_another) return Verdict::kOtherRevision;
  if (standing.kept) return Verdict::kPrefill;
  if (!standing.callable) return Verdict::kFull;
  const bool has_no_slot = !traits.adapter.empty() && !replica.takes_adapters();
  return has_no_slot ? Verdict::kNoSlot : Verdict::kBusier;
}

}  // namespace penstock::routing
