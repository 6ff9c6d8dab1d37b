// What metrics are made of: counters, gauges and histograms with one writer, the I/O thread that
// owns them, and any number of readers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::base {

// One writer, any reader: a plain load and store, no locked instruction.
class Counter {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Like Counter, up and down.
class Gauge {
 public:
  void add(std::int64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Upper bounds of a histogram's buckets but for the last, which has none. Each bound is a line of
// the page for each deployment: no more than tell something.
using Bounds = std::span<const double>;

// A phase of a request, in seconds: seven of them for each deployment and outcome.
inline constexpr std::array kPhaseBounds = {0.00005, 0.0002, 0.001, 0.005, 0.02, 0.1,
                                            0.5,     2.5,    10.0,  60.0,  300.0};
// What router programs and their engines take, in seconds.
inline constexpr std::array kCallBounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                           0.01,    0.025,  0.05,    0.1,    0.25,  0.5,    1.0,
                                           2.5,     5.0,    10.0,    30.0,   60.0,  180.0,  600.0};
// What a client waits for, in seconds.
inline constexpr std::array kWaitBounds = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,
                                           1.0,   2.5,   5.0,  10.0,  30.0, 60.0, 180.0, 600.0};
// The three that the GenAI conventions name have all bounds that these give, and some more: of long
// answers, and of fast tokens.
inline constexpr std::array kDurationBounds = {0.01,  0.02,  0.04,   0.08,   0.16,  0.32,
                                               0.64,  1.28,  2.56,   5.12,   10.24, 20.48,
                                               40.96, 81.92, 163.84, 327.68, 655.36};
inline constexpr std::array kFirstTokenBounds = {0.001, 0.005, 0.01, 0.02, 0.04,  0.06, 0.08,
                                                 0.1,   0.25,  0.5,  0.75, 1.0,   2.5,  5.0,
                                                 7.5,   10.0,  30.0, 60.0, 180.0, 600.0};
inline constexpr std::array kTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                            0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1.0,   2.5};
// Silences within an answer, in seconds: timers do not tell shorter ones apart.
inline constexpr std::array kSilenceBounds = {0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};
// How far off an estimate was.
inline constexpr std::array kRatioBounds = {0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0};

// Durations in fixed buckets. A ratio is observed as so many seconds.
class Histogram {
 public:
  static constexpr std::size_t kMostBuckets = kCallBounds.size() + 1;

  // `bounds` outlive the histogram.
  explicit Histogram(Bounds bounds = kPhaseBounds) : bounds_(bounds) {}

  // Into which bucket it fell.
  std::size_t observe(std::chrono::nanoseconds duration);
  Bounds bounds() const { return bounds_; }
  // What fell into one bucket; the last is number bounds().size().
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket].value(); }
  std::uint64_t observed() const;
  std::uint64_t sum_ns() const { return sum_ns_.value(); }

 private:
  const Bounds bounds_;
  std::array<Counter, kMostBuckets> counts_;
  Counter sum_ns_;
};

}  // namespace penstock::base
