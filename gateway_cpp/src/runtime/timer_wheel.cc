#include "runtime/timer_wheel.h"

#include <algorithm>

namespace penstock::runtime {

void TimerWheel::Link::unlink() {
  previous->next = next;
  next->previous = previous;
  next = previous = this;
}

void TimerWheel::Link::link_before(Link& other) {
  next = &other;
  previous = other.previous;
  previous->next = this;
  other.previous = this;
}

TimerWheel::TimerWheel(base::SteadyTime now) : start_(now), now_(now) {}

uint64_t TimerWheel::tick_of(base::SteadyTime time) const {
  return static_cast<uint64_t>(std::max<int64_t>(0, (time - start_) / kTick));
}

void TimerWheel::advance(base::SteadyTime now) {
  now_ = std::max(now, now_);
  const uint64_t last = tick_of(now_);
  while (tick_ < last) fire_slot(slots_[++tick_ % kSlots]);
}

// A woken owner may arm and disarm any timer: take one at a time.
void TimerWheel::fire_slot(Link& slot) {
  Link pending;
  if (slot.next == &slot) return;
  pending.link_before(slot);
  slot.unlink();  // the timers now hang on `pending`
  while (pending.next != &pending) {
    auto& timer = static_cast<Timer&>(*pending.next);
    timer.unlink();
    if (timer.due_ > tick_) {
      timer.link_before(slot);
      continue;
    }
    timer.fired_ = true;
    timer.signal_.raise();
  }
}

void TimerWheel::Timer::arm(std::chrono::milliseconds after) {
  unlink();
  fired_ = false;
  // One tick more, since now() may be almost a tick old: never early.
  due_ = wheel_.tick_of(wheel_.now_ + after) + 1;
  due_ = std::max(due_, wheel_.tick_ + 1);
  link_before(wheel_.slots_[due_ % kSlots]);
}

void TimerWheel::Timer::disarm() {
  unlink();
  fired_ = false;
}

}  // namespace penstock::runtime
