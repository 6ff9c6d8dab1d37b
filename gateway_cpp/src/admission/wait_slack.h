// By how much waits turn out longer than they were estimated: what a budget for them has to leave.
// An estimate is about right in the mean; who promises a limit must know how far the longest lie
// above it. Not for several threads at once; callers pass the time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "base/clock.h"

namespace penstock::admission {

class WaitSlack {
 public:
  using milliseconds = std::chrono::milliseconds;

  // How many waits it looks back, one of which lies above what within() says.
  static constexpr std::size_t kWaits = 128;
  // And how long: nobody waits, and shows that waits are shorter now, where all are sent away.
  static constexpr std::chrono::seconds kMemory{60};

  // One that was estimated at so long (over 0) has waited for so long.
  void learn(milliseconds estimated, milliseconds real, base::SteadyTime now);
  // What nearly all that are estimated at so long wait at most: never less than the estimate, and
  // never more than half as much again.
  milliseconds within(milliseconds estimated, base::SteadyTime now) const;

 private:
  struct Wait {
    base::SteadyTime over{};
    double ratio = 1;  // real over estimated
  };
  std::array<Wait, kWaits> waits_{};  // the oldest is at next_
  std::size_t next_ = 0;
};

}  // namespace penstock::admission
