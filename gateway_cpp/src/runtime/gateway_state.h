// What all I/O threads share about the gateway as a whole. Owned by main; any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::runtime {

struct GatewayState {
  std::atomic<bool> draining{false};         // set once, by the first SIGTERM
  std::atomic<bool> ending{false};           // set once, when the drain's time is over
  std::atomic<uint32_t> requests_cut{0};     // that were running then
  std::atomic<uint32_t> in_flight{0};        // requests from admit to settle
  std::atomic<uint32_t> connections{0};      // open client connections
  std::atomic<uint32_t> max_connections{0};  // as many as descriptors and flags allow now
};

}  // namespace penstock::runtime
