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

// The gateway's own work, in seconds.
inline constexpr std::array kPhaseBounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                            0.01,    0.025,  0.05,    0.1,    0.25,  0.5,    1.0,
                                            2.5,     5.0,    10.0,    30.0,   60.0,  180.0,  600.0};
// What a client waits for, in seconds.
inline constexpr std::array kWaitBounds = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,
                                           1.0,   2.5,   5.0,  10.0,  30.0, 60.0, 180.0, 600.0};
// One token of an answer, in seconds.
inline constexpr std::array kTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                            0.1,   0.25,   0.5,   1.0,  2.5};
// Silences within an answer, in seconds: timers do not tell shorter ones apart.
inline constexpr std::array kSilenceBounds = {0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};
// How far off an estimate was.
inline constexpr std::array kRatioBounds = {0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0};

// Durations in fixed buckets. A ratio is observed as so many seconds.
class Histogram {
 public:
  static constexpr std::size_t kMostBuckets = kPhaseBounds.size() + 1;

  // `bounds` outlive the histogram.
  explicit Histogram(Bounds bounds = kPhaseBounds) : bounds_(bounds) {}

  void observe(std::chrono::nanoseconds duration);
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
