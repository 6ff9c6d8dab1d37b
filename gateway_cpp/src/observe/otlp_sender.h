// Sends the spans of records to a collector, on a thread of its own: some hundred requests
// together, about once a second. What the collector does not take now is tried again a few times;
// beyond what may wait, and after the last try, requests are dropped and counted. Nobody waits for
// it. Owned by main.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "observe/collector.h"
#include "observe/http_post.h"
#include "observe/spans.h"

namespace penstock::observe {

struct OtlpLimits {
  std::size_t waiting = 2048;               // requests, those of the batch under way not among them
  std::size_t bytes = 4U << 20U;            // of their records
  std::size_t batch = 256;                  // requests
  unsigned tries = 5;                       // of one batch
  std::chrono::milliseconds gather{1'000};  // for others to go along
  std::chrono::milliseconds first_wait{1'000};  // before the second try; ever longer from then on
  std::chrono::milliseconds last{2'000};        // at the end, for all that waits
};

// Requests, since the start.
struct TraceCounts {
  std::uint64_t sent = 0;
  std::uint64_t queue_full = 0;  // dropped: too many waited
  std::uint64_t collector = 0;   // dropped: it did not take them
};

class OtlpSender {
 public:
  // `resource`: what is said of this process with each batch.
  OtlpSender(std::unique_ptr<HttpPost> post, Collector collector, NamedTexts resource,
             base::Log& log, OtlpLimits limits = {});
  OtlpSender(const OtlpSender&) = delete;
  OtlpSender& operator=(const OtlpSender&) = delete;
  ~OtlpSender();

  void start();
  // Idempotent; what waits is sent, as far as that takes no longer than its limit.
  void stop();

  // The bytes of a v1::RequestRecord. Any thread; never waits.
  void offer(const SpanFacts& facts, std::string bytes);
  TraceCounts counts() const;

 private:
  struct Offered {
    SpanFacts facts;
    std::string bytes;
  };
  using Batch = std::vector<Offered>;
  struct Body {
    std::string bytes;
    std::uint64_t spans = 0;
  };

  void run();
  Batch next_batch();  // empty: all is sent, and no more comes
  Body body_of(const Batch& batch) const;
  void send(const Batch& batch);
  void note_taken(std::uint64_t requests, std::uint64_t spans, const PostAnswer& answer);
  void note_lost(std::size_t requests, const PostAnswer& answer);
  bool pause(std::chrono::milliseconds duration);  // false if stopping
  std::chrono::milliseconds time_for_send();

  const std::unique_ptr<HttpPost> post_;
  const Collector collector_;
  const NamedTexts resource_;
  base::Log& log_;
  const OtlpLimits limits_;
  std::minstd_rand random_{std::random_device{}()};
  bool takes_ = true;  // the collector, the last time
  std::atomic<std::uint64_t> sent_{0}, queue_full_{0}, lost_{0};

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Offered> offered_;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point ends_at_{};  // once it is
  std::thread thread_;
};

}  // namespace penstock::observe
