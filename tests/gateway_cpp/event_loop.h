// The test's own thread as an I/O thread.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>

#include "runtime/awaitable.h"

namespace penstock::test {

class EventLoop {
 public:
  boost::asio::io_context& io() { return io_; }

  void spawn(runtime::Awaitable<void> task) {
    boost::asio::co_spawn(io_.get_executor(), std::move(task), boost::asio::detached);
  }

  // Runs handlers until `done()`; false after 20 s.
  template <class Done>
  bool run_until(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.run_one_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  // Runs what is ready now.
  void poll() { io_.poll(); }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
};

}  // namespace penstock::test
