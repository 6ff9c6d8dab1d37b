// Counts of durations in buckets of at most 1.6 % width, so that any number of samples takes the
// same memory. Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::evals {

class Histogram {
 public:
  void add(uint64_t value);
  void clear() { *this = Histogram{}; }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }

  // The smallest bucket's middle that at least `share` (0 to 1) of all samples do not exceed;
  // 0 when there are none.
  uint64_t quantile(double share) const;

 private:
  static constexpr unsigned kStepBits = 6;  // 64 steps per power of two
  static constexpr size_t kBuckets = (64 - kStepBits + 1) << kStepBits;

  static size_t bucket_of(uint64_t value);
  static uint64_t middle_of(size_t bucket);

  std::array<uint32_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace penstock::evals
