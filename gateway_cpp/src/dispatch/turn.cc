#include "dispatch/turn.h"

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

Place& Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  release();
  dispatcher_ = std::exchange(other.dispatcher_, nullptr);
  replica_ = std::exchange(other.replica_, nullptr);
  tenant_ = std::move(other.tenant_);
  priority_ = other.priority_;
  charged_ = other.charged_;
  work_ = other.work_;
  run_ = other.run_;
  counts_ = other.counts_;
  lost_ = other.lost_;
  config_ = other.config_;
  return *this;
}

void Place::release() {
  const auto dispatcher = std::exchange(dispatcher_, nullptr);
  if (dispatcher) dispatcher->release(*this);
  replica_.reset();
}

void Turn::leave() {
  Place unused = take();
  unused.worked(0);
  unused.cut_short();
}

Place Turn::take() {
  if (!has_place() && dispatcher_) dispatcher_->leave(*this);
  dispatcher_.reset();
  waker_.reset();
  excluded_.clear();
  retries_ = false;
  granted_.store(false, std::memory_order_relaxed);
  return std::move(place_);
}

}  // namespace penstock::dispatch
