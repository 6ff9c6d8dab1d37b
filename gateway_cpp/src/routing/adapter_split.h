// Which of the versions that share an alias answers a session. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// The index of the share that the hash falls to; 0 where no share has a weight. The shares lie side
// by side, in their order, on one interval, and a hash has its place there for good: so between two
// versions no more sessions move than weight does, and where a share between others grows, those of
// its neighbours that are next to it.
std::size_t share_for(std::span<const AdapterShare> shares, std::uint64_t hash);

// The index of the largest share, of equal ones the first.
std::size_t largest_share(std::span<const AdapterShare> shares);

}  // namespace penstock::routing
