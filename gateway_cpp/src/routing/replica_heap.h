// Replicas by a key, the least first: in, out and a new key in O(log n). Ties go to who was chosen
// longest ago, so equal ones take turns. A replica is in one heap at most.
#pragma once

#include <vector>

#include "routing/candidates.h"
#include "routing/replica.h"

namespace penstock::routing {

class ReplicaHeap {
 public:
  // In, or moved to where `key` and its note's `chosen` put it.
  void put(Replica& replica, double key);
  void remove(Replica& replica);
  bool contains(const Replica& replica) const { return replica.note.heap_at != SIZE_MAX; }

  // The least that candidates.allows(); null: none. Costs more only by those that it may not use.
  Replica* least(const Candidates& candidates) const;

 private:
  struct Entry {
    double key;
    std::uint64_t chosen;
    Replica* replica;
    bool operator<(const Entry& other) const {
      return key != other.key ? key < other.key : chosen < other.chosen;
    }
  };
  std::size_t least_below(std::size_t at, const Candidates& candidates) const;
  void place(std::size_t at, const Entry& entry);
  void sift(std::size_t at, Entry entry);

  std::vector<Entry> entries_;
};

}  // namespace penstock::routing
