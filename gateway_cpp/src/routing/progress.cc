#include "routing/progress.h"

namespace penstock::routing {

void Progress::sent(base::SteadyTime now) {
  if (!has_work()) since_ = now;
  ++unmoved_;
}

void Progress::released() {
  if (unmoved_ > 0) --unmoved_;
}

void Progress::answered(base::SteadyTime now) { since_ = now; }

void Progress::report(const LoadReport& load, base::SteadyTime now) {
  const std::uint64_t made = load.tokens + load.prompt_tokens + load.steps;
  const bool had_work = has_work();
  if (made != made_) unmoved_ = 0;
  const bool moves_kv = load.transfers > 0;
  if (made != made_ || moves_kv || !had_work || !reported_) since_ = now;
  made_ = made;
  engine_ = std::uint64_t{load.running} + load.waiting;
  reported_ = true;
}

bool Progress::is_stuck(std::chrono::milliseconds deadline, base::SteadyTime now) const {
  const auto at = due(deadline);
  return at && now >= *at;
}

std::optional<base::SteadyTime> Progress::due(std::chrono::milliseconds deadline) const {
  if (deadline.count() == 0 || !reported_ || !has_work()) return std::nullopt;
  return since_ + deadline;
}

}  // namespace penstock::routing
