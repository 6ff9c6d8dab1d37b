#include "base/request_times.h"

#include <algorithm>

namespace penstock::base {

void TracedHistogram::observe(std::chrono::nanoseconds value, const RequestEnd& end) {
  const std::size_t bucket = counts_.observe(value);
  Exemplar made{.value = value, .at = end.at};
  if (end.trace_id.size() != made.trace_id.size()) return;
  std::ranges::copy(end.trace_id, made.trace_id.begin());
  const std::lock_guard lock(mutex_);
  last_[bucket] = made;
}

Exemplars TracedHistogram::exemplars() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void RequestTimes::observe(const RequestEnd& end) {
  duration.observe(end.duration, end);
  if (end.ttft) ttft.observe(*end.ttft, end);
  if (end.token_time) token_time.observe(*end.token_time, end);
  if (end.queue_wait) queue_wait.observe(*end.queue_wait);
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (end.phases.entered[i]) phases[i].observe(end.phases.spent[i]);
  }
}

}  // namespace penstock::base
