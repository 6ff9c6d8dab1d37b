#include "routing/adapter_split.h"

#include <algorithm>

#include "routing/hashing.h"

namespace penstock::routing {

std::size_t share_for(std::span<const AdapterShare> shares, std::uint64_t hash) {
  std::uint64_t whole = 0;
  for (const AdapterShare& share : shares) whole += share.weight;
  if (whole == 0) return 0;
  // Of its own: the share does not hang together with canaries, or with the places on a ring.
  constexpr std::uint64_t kSalt = 0x73706c6974U;
  const std::uint64_t place = mix(mix(hash) ^ kSalt);
  // place / 2^64 of the whole, rounded down: below the sum of all weights.
  auto rest = static_cast<std::uint64_t>((static_cast<unsigned __int128>(place) * whole) >> 64U);
  std::size_t i = 0;
  while (rest >= shares[i].weight) rest -= shares[i++].weight;
  return i;
}

std::size_t largest_share(std::span<const AdapterShare> shares) {
  const auto largest = std::ranges::max_element(shares, {}, &AdapterShare::weight);
  return static_cast<std::size_t>(largest - shares.begin());
}

}  // namespace penstock::routing
