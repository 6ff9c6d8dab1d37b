#include "routing/places.h"

#include <algorithm>

namespace penstock::routing {
namespace {

std::uint32_t fair_share(std::uint32_t limit, std::uint32_t gateways) {
  return std::max(1U, limit / std::max(1U, gateways));
}

}  // namespace

bool has_place(const Places& places) {
  if (places.own == 0) return true;
  if (places.engine_full) return false;
  if (places.limit == 0) return true;
  const bool in_share = places.own < fair_share(places.limit, places.gateways);
  const std::uint64_t others = places.gateways > 1 && !in_share ? places.gateways - 1 : 0;
  const std::uint64_t racing = others * std::max(1U, places.unseen);
  return std::uint64_t{places.own} + places.elsewhere + racing < places.limit;
}

std::uint32_t most_calls(std::uint32_t limit, std::uint32_t gateways) {
  if (gateways <= 1) return std::max(1U, limit);
  return std::max(limit, 1U) + (gateways - 1) * fair_share(limit, gateways);
}

}  // namespace penstock::routing
