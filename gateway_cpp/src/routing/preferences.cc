#include "routing/preferences.h"

#include <algorithm>

#include "routing/candidates.h"

namespace penstock::routing {
namespace {

// How far above the mean load a preferred replica may be. To load an adapter elsewhere costs more
// than a longer way.
constexpr double kAdapterFactor = 2.0;
constexpr double kPlaceFactor = 1.25;
// Who is to load an adapter may have half of its places in use whatever the others have: whoever
// else is asked loads it, too.
constexpr double kLoadersShare = 0.5;

// Those of the group that may be chosen: all of a small one, a few in a row of a large one.
Preferences::Few look(const std::vector<Replica*>& group, double factor,
                      const Candidates& candidates, Random& random) {
  Preferences::Few few;
  if (group.empty()) return few;
  const std::size_t start = random.below(group.size());
  const std::size_t looks = std::min(group.size(), Preferences::kLookedAt);
  for (std::size_t i = 0; i < looks; ++i) {
    Replica* replica = group[(start + i) % group.size()];
    if (candidates.allows(*replica) && candidates.is_within(*replica, factor)) {
      few.replicas[few.count++] = replica;
    }
  }
  return few;
}

// Keeps the nearest.
void narrow(Preferences::Few& few) {
  if (few.count == 0) return;
  const auto nearer = [](const Replica* a, const Replica* b) {
    return a->nearness() < b->nearness();
  };
  const auto end = few.replicas + few.count;
  const Nearness nearest = (*std::min_element(few.replicas, end, nearer))->nearness();
  const auto kept = std::remove_if(few.replicas, end, [nearest](const Replica* replica) {
    return replica->nearness() != nearest;
  });
  few.count = static_cast<std::size_t>(kept - few.replicas);
}

}  // namespace

Preferences::Few Preferences::few(const Candidates& candidates, Random& random) const {
  if (!candidates.traits().adapter.empty()) {
    const Few adapted = for_adapter(candidates, random);
    if (adapted.count > 0) return adapted;
  }
  for (const Group* group : {&on_node_, &in_zone_}) {
    if (group->size() == known_.size()) return {};
    const Few few = look(*group, kPlaceFactor, candidates, random);
    if (few.count > 0) return few;
  }
  return {};
}

Preferences::Few Preferences::for_adapter(const Candidates& candidates, Random& random) const {
  const std::string_view adapter = candidates.traits().adapter;
  if (adapter.empty()) return {};
  const auto found = holders_.find(adapter);
  if (found != holders_.end()) {
    // Where all are alike nobody is preferred.
    if (found->second.size() == known_.size()) return {};
    Few few = look(found->second, kAdapterFactor, candidates, random);
    narrow(few);
    if (few.count > 0) return few;
  }
  Few loader;
  loader.replicas[0] = slots_.best(adapter, [&candidates](const Replica& replica) {
    return candidates.allows(replica) &&
           candidates.is_within(replica, kAdapterFactor, kLoadersShare);
  });
  loader.count = loader.replicas[0] == nullptr ? 0 : 1;
  return loader;
}

std::span<Replica* const> Preferences::holders(std::string_view adapter) const {
  const auto found = holders_.find(adapter);
  return found == holders_.end() ? std::span<Replica* const>() : found->second;
}

void Preferences::learn(Replica& replica, std::span<const std::string> adapters,
                        std::uint32_t slots) {
  forget(replica);
  auto& known = known_[&replica];
  for (const std::string& adapter : adapters) {
    if (std::ranges::find(known, adapter) != known.end()) continue;
    known.push_back(adapter);
    holders_[adapter].push_back(&replica);
  }
  slots_.put(replica, static_cast<std::uint32_t>(known.size()), slots);
  if (replica.nearness() == Nearness::kSameNode) on_node_.push_back(&replica);
  if (replica.nearness() != Nearness::kElsewhere) in_zone_.push_back(&replica);
}

void Preferences::forget(Replica& replica) {
  const auto found = known_.find(&replica);
  if (found == known_.end()) return;
  for (const std::string& adapter : found->second) {
    const auto group = holders_.find(adapter);
    std::erase(group->second, &replica);
    if (group->second.empty()) holders_.erase(group);
  }
  slots_.remove(replica);
  std::erase(on_node_, &replica);
  std::erase(in_zone_, &replica);
  known_.erase(found);
}

}  // namespace penstock::routing
