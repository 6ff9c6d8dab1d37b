// Wakes a coroutine on its own I/O thread, from whatever thread has news for it.
#pragma once

#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "runtime/awaitable.h"
#include "runtime/signal.h"

namespace penstock::runtime {

// Shared by the coroutine and whoever may wake it.
class WakeUp : public std::enable_shared_from_this<WakeUp> {
 public:
  // `signal` is raised on `io`'s thread, unless its owner has left by then.
  WakeUp(Executor io, Signal& signal) : io_(std::move(io)), signal_(&signal) {}

  void post() {
    boost::asio::post(io_, [self = shared_from_this()] {
      if (self->signal_ != nullptr) self->signal_->rouse();
    });
  }
  // The signal goes away. The I/O thread.
  void leave() { signal_ = nullptr; }

 private:
  const Executor io_;
  Signal* signal_;  // its I/O thread's
};

}  // namespace penstock::runtime
