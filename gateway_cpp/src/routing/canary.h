// Which deployment answers a request to one that gives shares of its requests to others. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// The name of the canary that the hash falls to; empty: the deployment itself. The hash is that of
// the session where there is one, so that its requests stay together, else of the request. A hash
// keeps its canary while only later weights change, and while its own grows. Weights beyond a whole
// count for nothing.
std::string_view canary_for(std::span<const CanaryWeight> weights, std::uint64_t hash);

}  // namespace penstock::routing
