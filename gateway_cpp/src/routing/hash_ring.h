// Consistent hashing: each replica has points on a ring, by its id, and a key belongs to the first
// one behind it. Who comes or goes takes or leaves its own keys and moves no others, and all
// gateways of a zone agree.
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
  Replica* first(std::uint64_t key, const Fits& fits) const {
    return first_of(points_, key, fits);
  }
  // The same among those in this gateway's zone; null also where these are none, or all.
  template <class Fits>
  Replica* first_in_zone(std::uint64_t key, const Fits& fits) const {
    return first_of(in_zone_, key, fits);
  }

 private:
  // So many that the mean share and the largest are not far apart.
  static constexpr std::size_t kPoints = 40;
  static constexpr std::size_t kLookedAt = 4 * kPoints;

  struct Point {
    std::uint64_t at;
    Replica* replica;
  };
  using Points = std::vector<Point>;  // sorted

  template <class Fits>
  static Replica* first_of(const Points& points, std::uint64_t key, const Fits& fits) {
    const auto place = std::ranges::lower_bound(points, mix(key), {}, &Point::at);
    std::size_t at = static_cast<std::size_t>(place - points.begin());
    for (std::size_t i = 0; i < std::min(kLookedAt, points.size()); ++i, ++at) {
      if (at >= points.size()) at = 0;
      if (fits(*points[at].replica)) return points[at].replica;
    }
    return nullptr;
  }

  Points points_;
  Points in_zone_;  // of those in the gateway's zone; empty where all are
};

// Where the key belongs among the candidates: the first on the ring that holds the request's
// adapter and is within kStickyFactor; else who is preferred for the adapter's sake; else the first
// on the ring that is within kStickyFactor, in the gateway's zone before others. Null: nobody is.
// Not on its node before others: gateways on many nodes would tear apart what belongs together.
Replica* sticky_to(std::uint64_t key, const HashRing& ring, const Candidates& candidates);

}  // namespace penstock::routing
