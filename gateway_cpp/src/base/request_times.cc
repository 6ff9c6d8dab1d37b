#include "base/request_times.h"

#include <algorithm>

namespace penstock::base {

void TracedHistogram::observe(std::chrono::nanoseconds value, const RequestEnd& end) {
  const std::size_t bucket = counts_.observe(value);
  Exemplar made{.value = value, .at = end.at};
  if (end.trace_id.size() != made.trace_id.size()) return;
  const auto known = std::ranges::find(last_, bucket, &Last::bucket);
  const bool is_known = known != last_.end();
  if (is_known) {  // of a later time: the clock was set back
    const auto since = end.at - known->request.at;
    if (since.count() >= 0 && since < kExemplarEvery) return;
  }
  std::ranges::copy(end.trace_id, made.trace_id.begin());
  const std::lock_guard lock(mutex_);
  if (is_known) {
    known->request = made;
  } else {
    last_.push_back({bucket, made});
  }
}

Exemplars TracedHistogram::exemplars() const {
  Exemplars found;
  const std::lock_guard lock(mutex_);
  for (const Last& last : last_) found[last.bucket] = last.request;
  return found;
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
