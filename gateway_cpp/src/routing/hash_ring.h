// Consistent hashing: each replica has points on a ring, by its id, and a key belongs to the first
// one behind it. Who comes or goes takes or leaves its own keys and moves no others, and all
// gateways agree.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "routing/candidates.h"
#include "routing/replica.h"

namespace penstock::routing {

// How far above the mean load a replica may be for the sake of a key that belongs there.
inline constexpr double kStickyFactor = 1.25;

class HashRing {
 public:
  // These and no others. O(replicas log replicas).
  void follow(std::span<const std::shared_ptr<Replica>> replicas);

  // The first from the key's place on that `fits`, maybe asked of the same one again; null: none of
  // those that are looked at.
  template <class Fits>
  Replica* first(std::uint64_t key, Fits fits) const {
    const auto place = std::ranges::lower_bound(points_, mix(key), {}, &Point::at);
    std::size_t at = static_cast<std::size_t>(place - points_.begin());
    for (std::size_t i = 0; i < std::min(kLookedAt, points_.size()); ++i, ++at) {
      if (at >= points_.size()) at = 0;
      if (fits(*points_[at].replica)) return points_[at].replica;
    }
    return nullptr;
  }

 private:
  // So many that the mean share and the largest are not far apart.
  static constexpr std::size_t kPoints = 40;
  static constexpr std::size_t kLookedAt = 4 * kPoints;

  struct Point {
    std::uint64_t at;
    Replica* replica;
  };
  std::vector<Point> points_;  // sorted
};

// Where the key belongs among the candidates: the first on the ring that holds the request's
// adapter and is within kStickyFactor; else who is preferred for the adapter's sake; else the first
// on the ring that is within kStickyFactor. Null: nobody is.
Replica* sticky_to(std::uint64_t key, const HashRing& ring, const Candidates& candidates);

}  // namespace penstock::routing
