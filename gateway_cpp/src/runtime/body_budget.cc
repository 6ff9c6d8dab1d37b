#include "runtime/body_budget.h"

#include <algorithm>

#include "runtime/room_wait.h"

namespace penstock::runtime {

std::shared_ptr<BodyBudget> BodyBudget::part_of(std::string_view client) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<BodyBudget>& kept = parts_[std::string(client)];
  std::shared_ptr<BodyBudget> part = kept.lock();
  if (!part) kept = part = std::make_shared<BodyBudget>(each_);
  if (parts_.size() >= forget_at_) forget_unused();
  return part;
}

bool BodyBudget::enlist(RoomWait& wait, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool is_new = std::exchange(wait.budget_, this) == nullptr;
  const bool was_woken = std::exchange(wait.woken_, false);
  wait.bytes_ = bytes;
  if (is_new) {
    wait.place_ = waits_.insert(waits_.end(), &wait);
    waiting_.fetch_add(1);
  }
  // Somebody else has taken what it was woken for, and may have left what others need.
  if (!is_new && was_woken) wake_locked();
  return is_new || was_woken;
}

// What it was woken for, and did not take, is others'.
void BodyBudget::strike(RoomWait& wait) {
  const std::lock_guard lock(mutex_);
  waits_.erase(wait.place_);
  waiting_.fetch_sub(1);
  wake_locked();
}

void BodyBudget::wake() {
  const std::lock_guard lock(mutex_);
  wake_locked();
}

// Nobody waits for room that is there because another one needs more.
void BodyBudget::wake_locked() {
  size_t left = free_.load();
  for (RoomWait* wait : waits_) {
    if (wait->bytes_ > left) continue;
    left -= wait->bytes_;
    if (!std::exchange(wait->woken_, true)) wait->waker_->post();
  }
}

// Each time that there are twice as many as were in use.
void BodyBudget::forget_unused() {
  constexpr size_t kLeast = 64;
  std::erase_if(parts_, [](const auto& part) { return part.second.expired(); });
  forget_at_ = std::max(kLeast, 2 * parts_.size());
}

}  // namespace penstock::runtime
