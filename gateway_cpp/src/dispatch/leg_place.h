// The place of a leg on a replica: a call that computes KV for a request elsewhere, or moves it. No
// answer to wait for: the wait model does not know it. Move only; going away gives it back. The
// owner's thread, but for the dispatcher's.
#pragma once

#include <memory>
#include <utility>

#include "routing/replica_set.h"

namespace penstock::dispatch {

class Dispatcher;

class LegPlace {
 public:
  LegPlace() = default;
  LegPlace(LegPlace&& other) noexcept { *this = std::move(other); }
  LegPlace& operator=(LegPlace&& other) noexcept {
    release();
    dispatcher_ = std::move(other.dispatcher_);
    replica_ = std::move(other.replica_);
    return *this;
  }
  ~LegPlace() { release(); }

  explicit operator bool() const { return replica_ != nullptr; }
  void release();

 private:
  friend class Dispatcher;

  std::shared_ptr<Dispatcher> dispatcher_;
  std::shared_ptr<routing::Replica> replica_;
};

}  // namespace penstock::dispatch
