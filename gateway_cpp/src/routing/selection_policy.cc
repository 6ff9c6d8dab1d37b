#include "routing/selection_policy.h"

#include <algorithm>

namespace penstock::routing {
namespace {

bool holds(const ReplicaRoute& replica, const std::string& adapter) {
  return adapter.empty() || std::find(replica.adapters.begin(), replica.adapters.end(), adapter) !=
                                replica.adapters.end();
}

}  // namespace

void view_replicas(const Route& route, std::span<const ReplicaId> tried, base::SteadyTime now,
                   std::vector<ReplicaView>& views) {
  views.clear();
  const std::uint32_t most = route.deployment->route.limits.max_ongoing;
  for (const Target& target : route.deployment->replicas) {
    const bool ready = target.route.state == ReplicaState::kReady && target.tracker->is_serving();
    const bool room = most == 0 || target.tracker->in_flight() < most;
    const bool fresh = std::find(tried.begin(), tried.end(), target.route.id) == tried.end();
    views.push_back({.eligible = ready && room && fresh,
                     .down_marked = target.tracker->is_down(now),
                     .holds_adapter = holds(target.route, route.adapter),
                     .load = target.tracker->load()});
  }
}

}  // namespace penstock::routing
