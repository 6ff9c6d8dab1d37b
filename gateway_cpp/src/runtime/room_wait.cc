#include "runtime/room_wait.h"

namespace penstock::runtime {

RoomWait::~RoomWait() {
  leave();
  if (waker_) waker_->leave();
}

bool RoomWait::must_try_again(const BodyShare& share) {
  if (!waker_) waker_ = std::make_shared<WakeUp>(io_, signal_);
  BodyBudget& lacking = share.lacking();
  if (budget_ != &lacking) leave();
  return lacking.enlist(*this, share.lacks());
}

void RoomWait::leave() {
  if (auto* const budget = std::exchange(budget_, nullptr)) budget->strike(*this);
}

}  // namespace penstock::runtime
