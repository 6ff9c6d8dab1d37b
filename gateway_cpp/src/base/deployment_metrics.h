// One deployment's numbers as one I/O thread counts them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics_values.h"
#include "base/request_end.h"
#include "base/request_times.h"
#include "base/slo.h"

namespace penstock::base {

// Why an answer goes on at another replica; the label "reason".
enum class ResumeReason : std::uint8_t {
  kKill,  // its engine was killed
  kHang,  // its engine, or its replica, does nothing any more
  kCrash,
  kLost,      // its replica is gone, or stopped working on it
  kHandOver,  // its replica leaves
};
inline constexpr std::size_t kResumeReasons = 5;
std::string_view name(ResumeReason reason);

// What came of that; the label "outcome".
enum class ResumeOutcome : std::uint8_t {
  kResumed,
  kTold,        // its client, that it is broken
  kClientLeft,  // before the rest came
};
inline constexpr std::size_t kResumeOutcomes = 3;
std::string_view name(ResumeOutcome outcome);

// What an objective has said of requests.
struct Judged {
  Counter requests;
  Counter bad;  // of these
};

// Held by the shard that counts in it and by each request that does; see Metrics. Counted by the
// owner's thread, read by any.
class DeploymentMetrics {
 public:
  explicit DeploymentMetrics(std::string name) : name_(std::move(name)) {}

  // One settled request; `status` is what the client saw, 499 if it left before a status.
  void settled(Outcome outcome, unsigned status);
  // How long it took, and what the deployment's objectives say of it.
  void ended(const RequestEnd& end, const Slo& objectives);
  // Admission said no, or a queue was left; `reason` is static.
  void dropped(std::string_view reason);
  // A request for this deployment was answered by a rung of its ladder. `reason` is static.
  void degraded(std::string_view reason, std::string_view rung);
  // An answer broke or was handed over, and that is what came of it.
  void resumed(ResumeReason reason, ResumeOutcome outcome) { resumes_[at(reason, outcome)].add(); }
  // How often; readers ask, too.
  std::uint64_t resumes(ResumeReason reason, ResumeOutcome outcome) const {
    return resumes_[at(reason, outcome)].value();
  }
  std::uint64_t resumes(ResumeOutcome outcome) const;  // whatever the reason
  // A wait that was estimated is over. Short ones say nothing of the estimate.
  void note_estimate(std::chrono::nanoseconds estimated, std::chrono::nanoseconds real);

  const std::string& name() const { return name_; }

  // For readers: visit(outcome, status, count), visit(reason, count), visit(reason, rung, count),
  // visit(times).
  template <class Visit>
  void each_settled(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const Settled& row : settled_) visit(row.outcome, row.status, row.count.value());
  }
  template <class Visit>
  void each_dropped(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const Dropped& row : dropped_) visit(row.reason, row.count.value());
  }

  template <class Visit>
  void each_degraded(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const Degraded& row : degraded_) visit(row.reason, row.rung, row.count.value());
  }

  template <class Visit>
  void each_times(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const RequestTimes& row : times_) visit(row);
  }

  Gauge in_flight;        // from the start of open to settle
  Counter events;         // SSE events written to clients
  Counter bytes;          // answer bytes written to clients
  Counter attempts;       // calls sent to replicas
  Counter failovers;      // of these, further ones, before the first byte
  Counter prompt_tokens;  // as replicas report them
  Counter completion_tokens;
  Counter cached_tokens;                   // of the prompt tokens
  Counter sent;                            // requests that went to a replica
  Counter sent_wait_us;                    // of these, admission to send; microseconds
  Counter prefix_hits;                     // answers whose prompt was in a cache, in part at least
  Histogram engine_ttft{kWaitBounds};      // accepted by the engine to its first token, as it says
  Histogram generation{kWaitBounds};       // of streams: first byte to last
  Histogram silence{kSilenceBounds};       // of streams: the longest between two writes
  Histogram pause{kWaitBounds};            // of resumed streams: broken to the next event
  Histogram program{kCallBounds};          // a router program asked to its decision
  Histogram engine_call{kCallBounds};      // of a router program, begun to answered
  Histogram estimate_error{kRatioBounds};  // |estimated - real| / real, a second standing for 1
  std::array<Judged, kObjectives> slo;     // by objective

 private:
  friend class Metrics;
  friend class MetricsShard;
  struct Settled {
    Settled(Outcome outcome, unsigned status) : outcome(outcome), status(status) {}
    Outcome outcome;
    unsigned status;
    Counter count;
  };
  struct Dropped {
    explicit Dropped(std::string_view reason) : reason(reason) {}
    std::string_view reason;
    Counter count;
  };
  struct Degraded {
    Degraded(std::string_view reason, std::string_view rung) : reason(reason), rung(rung) {}
    std::string_view reason;
    const std::string rung;
    Counter count;
  };
  // However often its ladder changes: what has no row by then is counted under other rungs.
  static constexpr std::size_t kMostDegraded = 256;

  RequestTimes& times_of(const RequestEnd& end);

  static constexpr std::size_t at(ResumeReason reason, ResumeOutcome outcome) {
    return static_cast<std::size_t>(reason) * kResumeOutcomes + static_cast<std::size_t>(outcome);
  }

  const std::string name_;
  std::array<Counter, kResumeReasons * kResumeOutcomes> resumes_;
  std::atomic<bool> retired_{false};  // nobody is shown it any more
  mutable std::mutex mutex_;          // the owner takes it to add a row, readers to walk the rows
  std::deque<Settled> settled_;
  std::deque<Dropped> dropped_;
  std::deque<Degraded> degraded_;
  std::deque<RequestTimes> times_;  // by outcome and operation
};

}  // namespace penstock::base
