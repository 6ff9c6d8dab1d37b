// Where an adapter is best loaded that nobody holds, or nobody with room: a replica with a free
// slot before one that has to make room, and of these the one with the fewest adapters; of equal
// ones the adapter's name decides, so that a burst for one adapter comes to one replica, from all
// gateways. Replicas that take no adapters are not in it. Costs the same for any number of
// replicas: of equal ones a few are looked at, the same few as long as the same replicas are equal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "routing/hashing.h"
#include "routing/replica.h"

namespace penstock::routing {

class AdapterSlots {
 public:
  // What the replica has of them now, in place of what it had; no slots: it takes no adapters.
  void put(Replica& replica, std::uint32_t loaded, std::uint32_t slots);
  void remove(const Replica& replica);

  // The best that `fits` for that adapter; null: none of those that are looked at.
  template <class Fits>
  Replica* best(std::string_view adapter, Fits fits) const {
    const std::uint64_t key = hash_text(adapter);
    std::size_t begin = 0;
    for (std::size_t group = 0; group < kGroups && begin < entries_.size(); ++group) {
      const std::size_t end = end_of_group(begin);
      const std::size_t start = place_in(begin, end, key);
      Replica* best = nullptr;
      std::uint64_t best_weight = 0;
      for (std::size_t i = 0; i < std::min(kLookedAt, end - begin); ++i) {
        Replica* replica = entries_[begin + (start + i) % (end - begin)].replica;
        const std::uint64_t weight = mix(key ^ replica->id_hash());
        if ((best == nullptr || weight > best_weight) && fits(*replica)) {
          best = replica;
          best_weight = weight;
        }
      }
      if (best != nullptr) return best;
      begin = end;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kLookedAt = 8;  // of equal ones
  static constexpr std::size_t kGroups = 8;    // of equal ones

  struct Entry {
    std::uint32_t rank;  // adapters loaded; the largest number: all slots are taken
    std::uint64_t place;
    std::uint32_t serial;
    Replica* replica;
    auto key() const { return std::tuple(rank, place, serial); }
  };
  std::size_t end_of_group(std::size_t begin) const;
  // Of the group's entries, counted from its first.
  std::size_t place_in(std::size_t begin, std::size_t end, std::uint64_t key) const;

  std::vector<Entry> entries_;  // sorted by key()
  std::unordered_map<const Replica*, Entry> known_;
};

}  // namespace penstock::routing
