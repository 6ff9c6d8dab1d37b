// Has something done about each period on one I/O thread. Waking a thread for so little costs more
// than what is done then, so whoever is awake anyway passes by: where it is nearly time, it is done
// at once. That thread only, apart from building, starting and destroying.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

#include "base/clock.h"
#include "runtime/awaitable.h"

namespace penstock::runtime {

class Ticker {
 public:
  // What is to be done; says how soon it is to be done again, at the latest.
  using Tick = std::function<std::chrono::milliseconds()>;

  // `tick` may not stop or destroy the ticker.
  Ticker(asio::io_context& io, const base::Clock& clock, Tick tick);
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Ticks now, and from now on.
  void start();
  // No tick follows.
  void stop();
  // The thread is awake: ticks in its next turn, if most of the period is over.
  void pass();
  // The period is too long now: ticks in the thread's next turn.
  void hurry() { timer_.cancel(); }

 private:
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  void tick();

  Timer timer_;
  const base::Clock& clock_;
  const Tick tick_;
  std::chrono::milliseconds period_{0};
  base::SteadyTime ticked_;
  bool running_ = false;
};

}  // namespace penstock::runtime
