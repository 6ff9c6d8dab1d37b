// How one coroutine hears that something it cares about has changed: news of its call, the client's
// socket, a timer. The coroutine waits, then looks at the state itself; a raise with nobody waiting
// is remembered, several are one. One I/O thread only, owned by the waiting coroutine.
//
// Resuming a coroutine costs more than most news are worth. A waiter may leave a reader that is
// called instead, and the coroutine goes on only where that cannot do what is to be done.
#pragma once

#include <boost/asio/async_result.hpp>
#include <optional>
#include <utility>

#include "runtime/awaitable.h"

namespace penstock::runtime {

class Signal {
 public:
  // Deals with news in its coroutine's stead, which goes on waiting meanwhile.
  class Reader {
   public:
    // False: it takes the coroutine. Neither raises the signal nor throws.
    virtual bool read() noexcept = 0;

   protected:
    ~Reader() = default;
  };

  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Has the news read, or resumes the waiter, before it returns.
  void raise() {
    if (!waiter_) {
      raised_ = true;
      return;
    }
    if (reader_ != nullptr && reader_->read()) return;
    reader_ = nullptr;
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    std::move(waiter)();
  }

  // The waiter is to look itself, whatever its reader could deal with.
  void rouse() {
    reader_ = nullptr;
    raise();
  }

  // co_await signal.wait(): at once if raised since the last wait. At most one waiter.
  Awaitable<void> wait() { return wait_with(nullptr); }

  // The same, until there is news that `reader` cannot deal with. It lives as long as the wait.
  Awaitable<void> wait(Reader& reader) { return wait_with(&reader); }

 private:
  // Waiter and reader come together: a wait that fails to begin leaves neither.
  Awaitable<void> wait_with(Reader* reader) {
    if (std::exchange(raised_, false)) return at_once();
    return asio::async_initiate<const asio::use_awaitable_t<Executor>&, void()>(
        [this, reader](auto&& waiter) {
          waiter_.emplace(std::forward<decltype(waiter)>(waiter));
          reader_ = reader;
        },
        kAwait);
  }

  static Awaitable<void> at_once() { co_return; }

  using Waiter = asio::async_result<asio::use_awaitable_t<Executor>, void()>::handler_type;

  std::optional<Waiter> waiter_;
  Reader* reader_ = nullptr;  // of the waiter; null: it has none
  bool raised_ = false;
};

}  // namespace penstock::runtime
