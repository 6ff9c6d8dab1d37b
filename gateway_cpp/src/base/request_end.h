// How a request ended, and what of that is counted.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace penstock::base {

// How a request ended; the label "outcome".
enum class Outcome : std::uint8_t {
  kSucceeded,
  kFailed,     // not the client's fault
  kRejected,   // by admission
  kCancelled,  // the client left
  kInvalid,    // the client's fault
};
inline constexpr std::size_t kOutcomes = 5;
std::string_view name(Outcome outcome);

// The seven phases of a request; the label "phase".
enum class Phase : std::uint8_t { kParse, kResolve, kAdmit, kSelect, kOpen, kStream, kSettle };
inline constexpr std::size_t kPhases = 7;
std::string_view name(Phase phase);

struct PhaseTimes {
  std::array<std::chrono::nanoseconds, kPhases> spent{};
  std::array<bool, kPhases> entered{};
};

// One request that has ended.
struct RequestEnd {
  Outcome outcome = Outcome::kCancelled;
  std::string_view operation = "unknown";                   // of its endpoint, static; the label
  std::chrono::nanoseconds duration{0};                     // read to settled
  std::optional<std::chrono::nanoseconds> ttft = {};        // read to its first answer byte
  std::optional<std::chrono::nanoseconds> token_time = {};  // the mean after the first token
  std::optional<std::chrono::nanoseconds> queue_wait = {};  // for places, all together
  PhaseTimes phases = {};
  std::string_view trace_id = {};  // 32 hex digits; empty: none
  WallTime at = {};
  bool streamed = false;   // its client asked for events
  bool own_limit = false;  // it was refused by a limit that its client or an operator set
};

}  // namespace penstock::base
