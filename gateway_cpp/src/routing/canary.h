// Who answers a request to a deployment that gives shares of its requests away. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// The canary that the hash falls to; null: none, the deployment itself. The hash is that of
// the session where there is one, so that its requests stay together, else of the request. A hash
// keeps its canary while only later weights change, and while its own grows. Weights beyond a whole
// count for nothing.
const CanaryWeight* canary_for(std::span<const CanaryWeight> weights, std::uint64_t hash);

}  // namespace penstock::routing
