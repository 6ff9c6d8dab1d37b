// Replicas in no order, each at most once: put, take and pick by number in constant time. A replica
// may be in several pools, one of each slot.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/replica.h"

namespace penstock::routing {

class ReplicaList {
 public:
  enum class Slot : std::uint8_t { kCallable, kSpare, kAdapting, kKept };
  explicit ReplicaList(Slot slot) : slot_(static_cast<std::size_t>(slot)) {}

  std::size_t size() const { return replicas_.size(); }
  Replica& operator[](std::size_t i) const { return *replicas_[i]; }

  // In or out, whatever it was.
  void set(Replica& replica, bool in) {
    std::size_t& at = replica.pool_at_[slot_];
    if (in == (at != SIZE_MAX)) return;
    if (in) {
      at = replicas_.size();
      replicas_.push_back(&replica);
      return;
    }
    replicas_[at] = replicas_.back();
    replicas_[at]->pool_at_[slot_] = at;
    replicas_.pop_back();
    at = SIZE_MAX;
  }

 private:
  std::size_t slot_;
  std::vector<Replica*> replicas_;
};

}  // namespace penstock::routing
