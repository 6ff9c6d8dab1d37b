// A coroutine's wait for room in a budget for bodies: it is woken when there may be some, on its
// own I/O thread. Those who wait for the same budget are woken in the order in which they came,
// each for whom there is room by then. Gives up its place when it goes away.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/signal.h"
#include "runtime/wake_up.h"

namespace penstock::runtime {

class RoomWait {
 public:
  // `signal` outlives the wait.
  RoomWait(Executor io, Signal& signal) : io_(std::move(io)), signal_(signal) {}
  RoomWait(const RoomWait&) = delete;
  RoomWait& operator=(const RoomWait&) = delete;
  ~RoomWait();

  // After `share` found no room, which outlives the wait. True: try again at once, since others may
  // have given some back before this was told of it. False: the signal will be raised.
  bool must_try_again(const BodyShare& share);

 private:
  friend class BodyBudget;

  void leave();

  const Executor io_;
  Signal& signal_;
  std::shared_ptr<WakeUp> waker_;  // null: it never had to wait
  BodyBudget* budget_ = nullptr;   // among whose waits it is
  // Guarded by the budget:
  std::list<RoomWait*>::iterator place_;
  size_t bytes_ = 0;    // that it waits for
  bool woken_ = false;  // and has not tried since
};

}  // namespace penstock::runtime
