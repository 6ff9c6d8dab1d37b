// A clock that stands until a test moves it.
#pragma once

#include "base/clock.h"

namespace penstock::test {

class FixedClock final : public base::Clock {
 public:
  base::SteadyTime steady_now() const override { return steady_; }
  base::WallTime wall_now() const override { return wall_; }

  void advance(std::chrono::nanoseconds by) {
    steady_ += by;
    wall_ += std::chrono::duration_cast<base::WallTime::duration>(by);
  }

 private:
  base::SteadyTime steady_{std::chrono::hours(1)};
  base::WallTime wall_{std::chrono::milliseconds(1'767'225'600'123)};
};

}  // namespace penstock::test
