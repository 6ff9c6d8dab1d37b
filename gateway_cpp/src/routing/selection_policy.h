// How a replica is chosen: one method over plain numbers. A policy keeps no references and may be
// asked from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "routing/route_table.h"

namespace penstock::routing {

// One replica as a policy sees it, at the same index as in DeploymentTargets::replicas.
struct ReplicaView {
  bool eligible = false;      // ready, has room, and not tried yet for this request
  bool down_marked = false;   // doubted: only if nobody else is left
  bool holds_adapter = true;  // the adapter asked for is loaded there
  std::uint32_t load = 0;     // calls, ours and others'
};

class SelectionPolicy {
 public:
  SelectionPolicy() = default;
  SelectionPolicy(const SelectionPolicy&) = delete;
  SelectionPolicy& operator=(const SelectionPolicy&) = delete;
  virtual ~SelectionPolicy() = default;

  // The index of the replica to send to; nothing if none is eligible.
  virtual std::optional<std::size_t> choose(std::span<const ReplicaView> replicas) const = 0;
};

// Fills `views` for one request. `tried` holds the ids that have failed it already.
void view_replicas(const Route& route, std::span<const ReplicaId> tried, base::SteadyTime now,
                   std::vector<ReplicaView>& views);

}  // namespace penstock::routing
