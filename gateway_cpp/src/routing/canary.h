// Who answers a request to a deployment that gives shares of its requests away. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// The canary that the hash falls to; null: none, the deployment itself. The hash is that of
// the session where there is one, so that its requests stay together, else of the request. A hash
// keeps its canary while only later weights change, and while its own grows. Weights beyond a whole
// count for nothing.
const CanaryWeight* canary_for(std::span<const CanaryWeight> weights, std::uint64_t hash);

// The canary that a request for `model`, a name of the deployment's, is judged for: that of the
// alias, else that of the deployment itself; null: none.
const CanaryRule* rule_for(const DeploymentRoute& deployment, std::string_view model);

}  // namespace penstock::routing
