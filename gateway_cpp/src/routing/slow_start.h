// How much of its share of the load a replica gets while it is new, or back after a doubt: a tenth
// at first, all of it after ten seconds. A preference: where nobody else has room it gets more.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace penstock::routing {

class SlowStart {
 public:
  static constexpr std::uint32_t kFull = 10;  // tenths

  void begin(base::SteadyTime now) {
    began_ = now;
    tenths_ = 1;
  }
  void advance(base::SteadyTime now) {
    if (tenths_ == kFull) return;
    const auto steps = std::max<std::int64_t>(0, (now - began_) / kStep);
    tenths_ = static_cast<std::uint32_t>(std::min<std::int64_t>(kFull, 1 + steps));
  }

  std::uint32_t tenths() const { return tenths_; }
  // When the share grows next; the largest time: it is whole.
  base::SteadyTime due() const {
    return tenths_ == kFull ? base::SteadyTime::max() : began_ + kStep * tenths_;
  }

 private:
  static constexpr std::chrono::milliseconds kStep{10'000 / (kFull - 1)};

  base::SteadyTime began_{};
  std::uint32_t tenths_ = kFull;
};

}  // namespace penstock::routing
