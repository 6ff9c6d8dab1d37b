#include "base/metrics_values.h"

#include <algorithm>

namespace penstock::base {

std::size_t Histogram::observe(std::chrono::nanoseconds duration) {
  const double seconds = static_cast<double>(duration.count()) / 1e9;
  std::size_t bucket =
      0;  // nearly all fall into one of the first: no search halves its way to them
  while (bucket < bounds_.size() && bounds_[bucket] < seconds) ++bucket;
  counts_[bucket].add();
  sum_ns_.add(static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0)));
  return bucket;
}

std::uint64_t Histogram::observed() const {
  std::uint64_t sum = 0;
  for (const Counter& count : counts_) sum += count.value();
  return sum;
}

}  // namespace penstock::base
