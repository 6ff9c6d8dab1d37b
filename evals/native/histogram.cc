#include "histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock::evals {

void Histogram::add(uint64_t value) {
  ++counts_[bucket_of(value)];
  ++count_;
  max_ = std::max(max_, value);
}

uint64_t Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max<uint64_t>(1, std::llround(std::ceil(share * double(count_))));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= wanted) return std::min(middle_of(bucket), max_);
  }
  return max_;
}

// Values below 64 have their own bucket each; above, the top six bits after the first choose.
size_t Histogram::bucket_of(uint64_t value) {
  if (value < (1u << kStepBits)) return value;
  const unsigned shift = unsigned(std::bit_width(value)) - 1 - kStepBits;
  return (size_t(shift + 1) << kStepBits) + ((value >> shift) & ((1u << kStepBits) - 1));
}

uint64_t Histogram::middle_of(size_t bucket) {
  if (bucket < (1u << kStepBits)) return bucket;
  const unsigned shift = unsigned(bucket >> kStepBits) - 1;
  const uint64_t low = ((1ull << kStepBits) + (bucket & ((1u << kStepBits) - 1))) << shift;
  return low + ((1ull << shift) >> 1);
}

}  // namespace penstock::evals
