// Fewest calls first. Equal ones take turns, so that an idle fleet is not one busy replica. A
// replica that holds the adapter goes before one that would have to load it; a down-marked one is
// taken only when no other is left.
#pragma once

#include <atomic>

#include "routing/selection_policy.h"

namespace penstock::routing {

class LeastLoaded final : public SelectionPolicy {
 public:
  std::optional<std::size_t> choose(std::span<const ReplicaView> replicas) const override;

 private:
  mutable std::atomic<std::uint32_t> turn_{0};  // where the next search starts
};

}  // namespace penstock::routing
