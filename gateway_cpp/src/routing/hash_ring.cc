#include "routing/hash_ring.h"

#include <iterator>

#include "routing/policy.h"

namespace penstock::routing {
namespace {

bool fits(const Replica& replica, const Candidates& candidates) {
  return candidates.allows(replica) && candidates.is_within(replica, kStickyFactor);
}

// Of few holders of an adapter the one that the key prefers (rendezvous hashing): a ring of all
// would have to be walked far to meet one.
Replica* preferred_holder(std::uint64_t key, std::span<Replica* const> holders,
                          const Candidates& candidates) {
  Replica* best = nullptr;
  std::uint64_t best_weight = 0;
  for (Replica* replica : holders) {
    const std::uint64_t weight = mix(key ^ replica->id_hash());
    if ((best == nullptr || weight > best_weight) && fits(*replica, candidates)) {
      best = replica;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace

void HashRing::follow(std::span<const std::shared_ptr<Replica>> replicas) {
  points_.clear();
  in_zone_.clear();
  points_.reserve(replicas.size() * kPoints);
  for (const auto& replica : replicas) {
    Random places(replica->id_hash());
    for (std::size_t i = 0; i < kPoints; ++i) points_.push_back({places.next(), replica.get()});
  }
  std::ranges::sort(points_, {}, &Point::at);
  const auto in_zone = [](const Point& point) { return point.replica->in_zone(); };
  if (std::ranges::all_of(points_, in_zone)) return;
  std::ranges::copy_if(points_, std::back_inserter(in_zone_), in_zone);
}

Replica* sticky_to(std::uint64_t key, const HashRing& ring, const Candidates& candidates) {
  const std::string_view adapter = candidates.traits().adapter;
  const auto holders = candidates.preferences().holders(adapter);
  Replica* holder = nullptr;
  if (holders.size() > Preferences::kLookedAt) {
    holder = ring.first(key, [&](const Replica& replica) {
      return fits(replica, candidates) && replica.holds(adapter);
    });
  } else {
    holder = preferred_holder(key, holders, candidates);
  }
  if (holder != nullptr) return holder;
  const Preferences::Few few = candidates.for_adapter();
  holder = least_of(few.all(), [](const Replica& each) { return each.standing().score; });
  if (holder != nullptr) return holder;
  const auto fitting = [&](const Replica& replica) { return fits(replica, candidates); };
  holder = ring.first_in_zone(key, fitting);
  return holder != nullptr ? holder : ring.first(key, fitting);
}

}  // namespace penstock::routing
