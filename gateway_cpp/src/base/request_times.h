// Histograms of the requests that ended alike, with the last request of each bucket.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/metrics_values.h"
#include "base/request_end.h"

namespace penstock::base {

// A request that fell into a bucket: where to look for one that took so long.
struct Exemplar {
  std::array<char, 32> trace_id{};  // hex digits
  std::chrono::nanoseconds value{0};
  WallTime at = {};  // the epoch: there was none

  bool is_there() const { return at != WallTime{}; }
};

// Those of one histogram, by bucket.
using Exemplars = std::array<Exemplar, Histogram::kMostBuckets>;

// Nobody reads them more often.
inline constexpr std::chrono::milliseconds kExemplarEvery{500};

// A histogram that keeps a late one of each bucket. One writer, any reader.
class TracedHistogram {
 public:
  explicit TracedHistogram(Bounds bounds) : counts_(bounds) {}

  void observe(std::chrono::nanoseconds value, const RequestEnd& end);
  const Histogram& counts() const { return counts_; }
  Exemplars exemplars() const;

 private:
  struct Last {
    std::size_t bucket;
    Exemplar request;
  };

  Histogram counts_;
  mutable std::mutex mutex_;  // for readers, and for the writer where it changes what they read
  std::vector<Last> last_;    // of the few buckets that were met
};

class RequestTimes {
 public:
  // `operation` is static.
  RequestTimes(Outcome outcome, std::string_view operation)
      : outcome_(outcome), operation_(operation) {}

  void observe(const RequestEnd& end);
  Outcome outcome() const { return outcome_; }
  std::string_view operation() const { return operation_; }

  TracedHistogram duration{kDurationBounds};
  TracedHistogram ttft{kFirstTokenBounds};
  TracedHistogram token_time{kTokenBounds};
  Histogram queue_wait{kWaitBounds};
  std::array<Histogram, kPhases> phases;

 private:
  const Outcome outcome_;
  const std::string_view operation_;
};

}  // namespace penstock::base
