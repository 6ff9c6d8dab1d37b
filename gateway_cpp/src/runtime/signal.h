// How one coroutine hears that something it cares about has changed: news of its call, the client's
// socket, a timer. The coroutine waits, then looks at the state itself; a raise with nobody waiting
// is remembered, several are one. One I/O thread only, owned by the waiting coroutine.
#pragma once

#include <boost/asio/async_result.hpp>
#include <optional>
#include <utility>

#include "runtime/awaitable.h"

namespace penstock::runtime {

class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Resumes the waiter before it returns.
  void raise() {
    if (!waiter_) {
      raised_ = true;
      return;
    }
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    std::move(waiter)();
  }

  // co_await signal.wait(): at once if raised since the last wait. At most one waiter.
  Awaitable<void> wait() {
    if (std::exchange(raised_, false)) return at_once();
    return asio::async_initiate<const asio::use_awaitable_t<Executor>&, void()>(
        [this](auto&& waiter) { waiter_.emplace(std::forward<decltype(waiter)>(waiter)); }, kAwait);
  }

 private:
  static Awaitable<void> at_once() { co_return; }

  using Waiter = asio::async_result<asio::use_awaitable_t<Executor>, void()>::handler_type;

  std::optional<Waiter> waiter_;
  bool raised_ = false;
};

}  // namespace penstock::runtime
