// How a request found its deployment, and what the estimate of its wait was made of. A value.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace penstock::dispatch {

struct QueueTurn {
  std::chrono::milliseconds estimated_wait{0};  // 0: it need not wait
  std::uint32_t ready = 0;                      // replicas
  std::uint32_t with_room = 0;                  // of these, those that could take it at once
  std::uint32_t running = 0;                    // places of the deployment that were held
  std::uint64_t work_before = 0;                // of all that went before it, in token work
  std::uint32_t work_a_second = 0;              // that all places together were seen to run at
  // By base::Priority: those that go before it, where it waits; else those that waited.
  std::array<std::uint32_t, 3> ahead{};
  std::uint32_t place = 0;  // in the queue, from 1; 0: it does not wait
};

}  // namespace penstock::dispatch
