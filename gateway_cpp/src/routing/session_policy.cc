#include "routing/session_policy.h"

namespace penstock::routing {

Replica* SessionPolicy::choose(const Candidates& candidates) {
  const std::uint64_t session = candidates.traits().session;
  Replica* owner = session != 0 ? sticky_to(session, ring_, candidates) : nullptr;
  return owner != nullptr ? owner : power_of_two_.choose(candidates);
}

void SessionPolicy::follow(std::span<const std::shared_ptr<Replica>> replicas) {
  ring_.follow(replicas);
}

}  // namespace penstock::routing
