#include "routing/places.h"

#include <algorithm>

namespace penstock::routing {
bool has_place(const Places& places) {
  if (places.own == 0) return true;
  if (places.engine_full) return false;
  if (places.limit == 0) return true;
  const std::uint32_t share = std::max(1U, places.limit / std::max(1U, places.gateways));
  const bool in_share = places.own < share;
  const std::uint64_t others = places.gateways > 1 && !in_share ? places.gateways - 1 : 0;
  const std::uint64_t racing = others * std::max(1U, places.unseen);
  return std::uint64_t{places.own} + places.elsewhere + racing < places.limit;
}

}  // namespace penstock::routing
