// The time that a request's body may take, and how much of it has to come in each stretch of that.
// One for each reader; its I/O thread only.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.h"
#include "base/error.h"
#include "runtime/timer_wheel.h"

namespace penstock::http {

class BodyPace {
 public:
  static constexpr std::chrono::milliseconds kStretch{10'000};

  // `rate`: bytes a second at least; 0: any. `timer` is its own from begin() to the body's end.
  BodyPace(const runtime::TimerWheel& timers, runtime::TimerWheel::Timer& timer,
           std::chrono::milliseconds whole, size_t rate)
      : timers_(timers), timer_(timer), whole_(whole), rate_(rate) {}

  void begin();
  void note(size_t bytes) { came_ += bytes; }
  // It had to wait for us: less may come in this stretch.
  void excuse() { came_ += least(); }
  // Whether the whole time is over, of a body that does not wait for its client.
  bool is_over();
  // Whether it is, or too little came in a stretch; fault() tells.
  bool is_late();
  base::Error fault() const;

 private:
  void begin_stretch();
  std::chrono::milliseconds left() const;
  size_t least() const { return rate_ * static_cast<size_t>(stretch_.count()) / 1000; }

  const runtime::TimerWheel& timers_;
  runtime::TimerWheel::Timer& timer_;
  const std::chrono::milliseconds whole_;
  const size_t rate_;
  base::SteadyTime until_;
  std::chrono::milliseconds stretch_{0};
  size_t came_ = 0;  // in it
};

}  // namespace penstock::http
