// How a replica is chosen for a request among those that may be called. One policy for each
// deployment, by name and under its ReplicaSet's guard; it may keep what it needs between choices.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "routing/candidates.h"

namespace penstock::routing {

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // One that candidates.allows(), and what is noted of the choice: it is as good as sent. Null only
  // if there is none.
  virtual Replica* choose(const Candidates& candidates) = 0;
  // As deployments call it: static.
  virtual std::string_view name() const = 0;

  // The replica's standing changed: whether it is callable, or its score.
  virtual void update(Replica& replica) { static_cast<void>(replica); }
  // Other replicas are in the set. One that left was told to update() before, as not callable.
  virtual void follow(std::span<const std::shared_ptr<Replica>> replicas) {
    static_cast<void>(replicas);
  }
};

// round_robin, least_loaded, power_of_two, prefix_aware or session; for any other name, as for an
// empty one, power_of_two.
std::unique_ptr<Policy> make_policy(std::string_view name);

// The one of a few that the smaller key belongs to; null of none.
template <class Key>
Replica* least_of(std::span<Replica* const> few, Key key) {
  Replica* best = nullptr;
  for (Replica* replica : few) {
    if (best == nullptr || key(*replica) < key(*best)) best = replica;
  }
  return best;
}

}  // namespace penstock::routing
