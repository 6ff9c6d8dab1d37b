#include "runtime/ticker.h"

#include <utility>

namespace penstock::runtime {

Ticker::Ticker(asio::io_context& io, const base::Clock& clock, Tick tick)
    : timer_(io.get_executor()), clock_(clock), tick_(std::move(tick)) {}

void Ticker::start() {
  running_ = true;
  tick();
}

void Ticker::stop() {
  running_ = false;
  timer_.cancel();
}

// Who waits for the timer is told that it was cancelled, which is the tick.
void Ticker::pass() {
  if (clock_.steady_now() - ticked_ >= period_ * 3 / 5) hurry();
}

void Ticker::tick() {
  ticked_ = clock_.steady_now();
  period_ = tick_();
  timer_.expires_after(period_);
  timer_.async_wait([this](boost::system::error_code /*cancelled*/) {
    if (running_) tick();
  });
}

}  // namespace penstock::runtime
