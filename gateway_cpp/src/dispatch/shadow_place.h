// A shadow's place on a replica: no request has to wait for it. It stays where it is; going away
// gives the place back, if it was not given up before. The owner's thread, but for the
// dispatcher's.
#pragma once

#include <atomic>
#include <memory>

#include "dispatch/turn.h"
#include "routing/replica_set.h"

namespace penstock::dispatch {

class ShadowPlace {
 public:
  ShadowPlace() = default;
  ShadowPlace(const ShadowPlace&) = delete;
  ShadowPlace& operator=(const ShadowPlace&) = delete;
  ~ShadowPlace() { release(); }

  // Null: it has none yet.
  const std::shared_ptr<routing::Replica>& replica() const { return replica_; }
  // A request has it by now: the shadow is to end at once. Its waker tells.
  bool was_given_up() const { return given_up_.load(std::memory_order_acquire); }
  void release();

 private:
  friend class Dispatcher;

  std::shared_ptr<Dispatcher> dispatcher_;  // whose place it has; null: none
  std::shared_ptr<routing::Replica> replica_;
  std::shared_ptr<Waker> waker_;
  std::atomic<bool> given_up_{false};
};

}  // namespace penstock::dispatch
