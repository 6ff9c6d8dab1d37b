// Wakes a request's coroutine on its own I/O thread, from whatever thread has news for it.
#pragma once

#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "dispatch/turn.h"
#include "runtime/awaitable.h"
#include "runtime/signal.h"

namespace penstock::proxy {

// Shared by the request and whoever may wake it.
class WakeUp final : public dispatch::Waker, public std::enable_shared_from_this<WakeUp> {
 public:
  // `signal` is raised on `io`'s thread, unless the request has left by then.
  WakeUp(runtime::Executor io, runtime::Signal& signal) : io_(std::move(io)), signal_(&signal) {}

  void wake() override {
    boost::asio::post(io_, [self = shared_from_this()] {
      if (self->signal_ != nullptr) self->signal_->raise();
    });
  }
  // The signal goes away. The request's thread.
  void leave() { signal_ = nullptr; }

 private:
  const runtime::Executor io_;
  runtime::Signal* signal_;  // its I/O thread's
};

}  // namespace penstock::proxy
