// Coarse timers for one I/O thread: arming, moving and disarming one is a few stores, and one tick
// of the thread serves them all. A timer fires up to one tick late. Its owner is told by its signal
// and asks fired(). One thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "runtime/signal.h"

namespace penstock::runtime {

class TimerWheel {
 public:
  static constexpr std::chrono::milliseconds kTick{50};

  class Timer;

  explicit TimerWheel(base::SteadyTime now);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // The time of the last advance(): free to ask, about one tick old at most where there are timers.
  base::SteadyTime now() const { return now_; }

  // Fires what is due. Called by the thread's ticker, about once each kTick; by one that ticks more
  // seldom while there are no timers before the next is armed, too.
  void advance(base::SteadyTime now);

 private:
  struct Link {
    Link* next = this;
    Link* previous = this;

    void unlink();
    void link_before(Link& other);
  };
  static constexpr size_t kSlots = 1024;  // about 51 s; what is due later goes round again

  uint64_t tick_of(base::SteadyTime time) const;
  void fire_slot(Link& slot);

  const base::SteadyTime start_;
  base::SteadyTime now_;
  uint64_t tick_ = 0;  // all before and including it have been fired
  std::array<Link, kSlots> slots_;
};

class TimerWheel::Timer : private TimerWheel::Link {
 public:
  Timer(TimerWheel& wheel, runtime::Signal& signal) : wheel_(wheel), signal_(signal) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { unlink(); }

  // Sets it to fire so far from now, whatever it was set to before.
  void arm(std::chrono::milliseconds after);
  void disarm();
  // Since it was armed last.
  bool fired() const { return fired_; }

 private:
  friend class TimerWheel;

  TimerWheel& wheel_;
  runtime::Signal& signal_;
  uint64_t due_ = 0;  // tick
  bool fired_ = false;
};

}  // namespace penstock::runtime
