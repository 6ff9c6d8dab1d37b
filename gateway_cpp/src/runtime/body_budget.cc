#include "runtime/body_budget.h"

#include <algorithm>

namespace penstock::runtime {

std::shared_ptr<BodyBudget> BodyBudget::part_of(std::string_view client) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<BodyBudget>& kept = parts_[std::string(client)];
  std::shared_ptr<BodyBudget> part = kept.lock();
  if (!part) kept = part = std::make_shared<BodyBudget>(each_);
  if (parts_.size() >= forget_at_) forget_unused();
  return part;
}

// Each time that there are twice as many as were in use.
void BodyBudget::forget_unused() {
  constexpr size_t kLeast = 64;
  std::erase_if(parts_, [](const auto& part) { return part.second.expired(); });
  forget_at_ = std::max(kLeast, 2 * parts_.size());
}

}  // namespace penstock::runtime
