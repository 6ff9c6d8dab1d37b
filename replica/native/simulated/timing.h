// When the tokens of a stream are due. Pure functions of time.
//
// The first token is due `ttft` after the stream got its slot. The others are due on a grid that
// all streams of one rate share, as in an engine whose steps make one token for every running call.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock::replica::simulated {

using Time = std::chrono::nanoseconds;  // since the engine's start

inline constexpr Time kNever = Time::max();

inline uint64_t micros(Time time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

// Time between the tokens of a stream; 0: no pace, as fast as it goes.
inline Time period_of(double tokens_per_second) {
  if (tokens_per_second <= 0) return Time(0);
  return Time(static_cast<int64_t>(1e9 / tokens_per_second));
}

// The last step of the grid that is not after `now`.
inline int64_t step_at(Time now, Time period) { return now / period; }

// The step that brings the token after the first: at least half a period later, so that the gap is
// one period on average.
inline int64_t second_token_step(Time first, Time period) {
  return (first + period / 2) / period + 1;
}

// Tokens that a stream owes at `now` whose next one comes with `next_step`. More than one after an
// engine thread that woke late.
inline int64_t tokens_due(int64_t next_step, Time now, Time period) {
  const int64_t step = step_at(now, period);
  return step < next_step ? 0 : step - next_step + 1;
}

}  // namespace penstock::replica::simulated
