// Time as an interface, so that tests can move it. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace penstock::base {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// Milliseconds since 1970, as messages have it.
inline std::int64_t unix_ms(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
inline WallTime from_unix_ms(std::int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual SteadyTime steady_now() const = 0;  // for durations and deadlines
  virtual WallTime wall_now() const = 0;      // for logs and reports
};

class SystemClock final : public Clock {
 public:
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
};

}  // namespace penstock::base
