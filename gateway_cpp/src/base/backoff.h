// How long to wait before the next attempt at what is away: a tenth of a second, then twice as long
// each time, up to a second. A value.
#pragma once

#include <algorithm>
#include <chrono>

namespace penstock::base {

class Backoff {
 public:
  std::chrono::milliseconds next() { return wait_ = std::clamp(wait_ * 2, kFirst, kMost); }
  // An attempt came to something.
  void reset() { wait_ = {}; }

 private:
  static constexpr std::chrono::milliseconds kFirst{100};
  static constexpr std::chrono::milliseconds kMost{1'000};
  std::chrono::milliseconds wait_{0};
};

}  // namespace penstock::base
