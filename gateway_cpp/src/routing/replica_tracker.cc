#include "routing/replica_tracker.h"

namespace penstock::routing {

void ReplicaTracker::report(std::uint32_t running, std::uint32_t waiting) {
  const std::uint32_t all = running + waiting;
  const std::uint32_t ours = in_flight();
  elsewhere_.store(all > ours ? all - ours : 0, std::memory_order_relaxed);
}

std::chrono::milliseconds ReplicaTracker::note_failure(Blame blame, base::SteadyTime now) {
  if (is_down(now)) return std::chrono::milliseconds(0);
  const std::uint32_t failures = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto doubt = doubt_after(failures, blame);
  if (doubt.count() > 0) mark_down(now + doubt);
  return doubt;
}

// Each answered call comes here: a store that changes nothing would cost the other threads' caches.
void ReplicaTracker::mark_up() {
  if (down_until_.load(std::memory_order_relaxed) != 0) {
    down_until_.store(0, std::memory_order_relaxed);
  }
  if (failures_.load(std::memory_order_relaxed) != 0) {
    failures_.store(0, std::memory_order_relaxed);
  }
}

void ReplicaTracker::mark_down(base::SteadyTime until) {
  const std::int64_t end =
      std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch()).count();
  std::int64_t known = down_until_.load(std::memory_order_relaxed);
  while (known < end && !down_until_.compare_exchange_weak(known, end, std::memory_order_relaxed)) {
  }
}

bool ReplicaTracker::is_down(base::SteadyTime now) const {
  const std::int64_t at =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  return at < down_until_.load(std::memory_order_relaxed);
}

}  // namespace penstock::routing
