// The calls of one session go to one replica, whichever gateway they come through, as long as it is
// not loaded far above the others; then to the next on the ring. Without a session: power_of_two.
#pragma once

#include "routing/hash_ring.h"
#include "routing/policy.h"
#include "routing/power_of_two_policy.h"

namespace penstock::routing {

class SessionPolicy final : public Policy {
 public:
  Replica* choose(const Candidates& candidates) override;
  std::string_view name() const override { return "session"; }
  void follow(std::span<const std::shared_ptr<Replica>> replicas) override;

 private:
  HashRing ring_;
  PowerOfTwoPolicy power_of_two_;
};

}  // namespace penstock::routing
