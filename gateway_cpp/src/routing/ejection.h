// How long failures speak against a replica. Pure: the tracker counts, this decides.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock::routing {

// What failed.
enum class Blame : std::uint8_t {
  kProcess,  // the replica cannot be reached, was lost, or its engine died
  kAnswer,   // it lives and answered with a fault of its own, or not in time
};

// Doubt after so many failures in a row, this one included; 0: none yet. A process that is away is
// doubted at once, one that answers badly from its third failure on; each further time for twice as
// long, from one second to thirty.
std::chrono::milliseconds doubt_after(std::uint32_t failures, Blame blame);

}  // namespace penstock::routing
