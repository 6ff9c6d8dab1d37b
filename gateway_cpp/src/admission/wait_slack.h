// By how much waits turn out longer than they were estimated: what a budget for them has to leave.
// An estimate is about right in the mean; who promises a limit must know how far the longest lie
// above it. Not for several threads at once.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace penstock::admission {

class WaitSlack {
 public:
  // How many waits it looks back, one of which lies above what within() says.
  static constexpr std::size_t kWaits = 128;

  WaitSlack() { ratios_.fill(1); }

  // One that was estimated at so long (over 0) has waited for so long.
  void learn(std::chrono::milliseconds estimated, std::chrono::milliseconds real);
  // What nearly all that are estimated at so long wait at most: never less than the estimate, and
  // never more than half as much again, as a wait for a replica that died says nothing of the next.
  std::chrono::milliseconds within(std::chrono::milliseconds estimated) const;

 private:
  std::array<float, kWaits> ratios_{};  // real over estimated; the oldest is at next_
  std::size_t next_ = 0;
  float slack_ = 1;  // the second largest of them, within its limits
};

}  // namespace penstock::admission
