#include "routing/least_loaded.h"

#include <tuple>

namespace penstock::routing {
namespace {

// Smaller is better.
auto rank(const ReplicaView& replica) {
  return std::tuple(replica.down_marked, !replica.holds_adapter, replica.load);
}

}  // namespace

std::optional<std::size_t> LeastLoaded::choose(std::span<const ReplicaView> replicas) const {
  if (replicas.empty()) return std::nullopt;
  const std::size_t first = turn_.fetch_add(1, std::memory_order_relaxed) % replicas.size();
  std::optional<std::size_t> best;
  for (std::size_t step = 0; step < replicas.size(); ++step) {
    const std::size_t i = (first + step) % replicas.size();
    if (!replicas[i].eligible) continue;
    if (!best || rank(replicas[i]) < rank(replicas[*best])) best = i;
  }
  return best;
}

}  // namespace penstock::routing
