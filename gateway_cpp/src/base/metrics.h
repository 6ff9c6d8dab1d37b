// Counters without locks on the request path. Each I/O thread owns one MetricsShard and is its only
// writer; Metrics owns all shards and sums them when somebody scrapes. Label sets are bounded: the
// deployment label is a name from the route snapshot, or "unknown".
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::base {

// How a request ended; the label "outcome".
enum class Outcome : std::uint8_t {
  kSucceeded,
  kFailed,     // not the client's fault
  kRejected,   // by admission
  kCancelled,  // the client left
  kInvalid,    // the client's fault
};
std::string_view name(Outcome outcome);

// The seven phases of a request; the label "phase".
enum class Phase : std::uint8_t { kParse, kResolve, kAdmit, kSelect, kOpen, kStream, kSettle };
inline constexpr std::size_t kPhases = 7;
std::string_view name(Phase phase);

// The deployment label of requests that never came as far as a known name.
inline constexpr std::string_view kUnknownDeployment = "unknown";

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

// Durations in fixed buckets from 50 us to 10 min.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 22;             // the last is +Inf
  static std::span<const double, kBuckets - 1> bounds();  // seconds

  void observe(std::chrono::nanoseconds duration);
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket].value(); }
  std::uint64_t sum_ns() const { return sum_ns_.value(); }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter sum_ns_;
};

// One deployment's numbers in one shard. References stay valid as long as the Metrics.
class DeploymentMetrics {
 public:
  explicit DeploymentMetrics(std::string name) : name_(std::move(name)) {}

  // One settled request; `status` is what the client saw, 499 if it left before a status.
  void settled(Outcome outcome, unsigned status);
  // Admission said no, or a queue was left; `reason` is static.
  void dropped(std::string_view reason);
  // A wait that was estimated is over. Short ones say nothing of the estimate.
  void note_estimate(std::chrono::nanoseconds estimated, std::chrono::nanoseconds real);

  const std::string& name() const { return name_; }

  Gauge in_flight;        // from the start of open to settle
  Counter events;         // SSE events written to clients
  Counter bytes;          // answer bytes written to clients
  Counter failovers;      // further replicas tried before the first byte
  Counter prompt_tokens;  // as replicas report them
  Counter completion_tokens;
  Counter cached_tokens;     // of the prompt tokens
  Histogram ttft;            // request read to first answer byte handed to the socket
  Histogram queue_wait;      // admission to send
  Histogram duration;        // request read to settled
  Histogram estimate_error;  // |estimated - real| / real, a second standing for 1

 private:
  friend class Metrics;
  struct Settled {
    Settled(Outcome outcome, unsigned status) : outcome(outcome), status(status) {}
    Outcome outcome;
    unsigned status;
    Counter count;
  };

  std::string name_;
  mutable std::mutex mutex_;  // the owner takes it to add a row, readers to walk the rows
  struct Dropped {
    explicit Dropped(std::string_view reason) : reason(reason) {}
    std::string_view reason;
    Counter count;
  };
  std::deque<Settled> settled_;
  std::deque<Dropped> dropped_;
};

// All numbers of one I/O thread.
class MetricsShard {
 public:
  // The numbers of a deployment, made on first use. Owner thread only; keep the reference for the
  // length of a request.
  DeploymentMetrics& deployment(std::string_view name);

  Counter bytes_sent;  // to clients, as they are written
  Gauge connections;   // open client connections
  Counter connections_total;
  Counter connections_refused;  // at the limit of connections
  Counter connections_evicted;  // that waited for a request and gave way to another
  Counter tls_handshakes;       // that came to an end, and of them
  Counter tls_handshakes_failed;
  Counter broken_requests;  // that ended by an exception: our own faults
  Gauge sessions;           // open sessions to replicas
  Counter bad_requests;     // HTTP that could not be read at all
  Counter heartbeats;       // SSE comments written in silence
  std::array<Histogram, kPhases> phases;

  Histogram& phase(Phase which) { return phases[static_cast<std::size_t>(which)]; }

 private:
  friend class Metrics;
  mutable std::mutex mutex_;  // the owner takes it to add a deployment, readers to walk them
  std::deque<DeploymentMetrics> deployments_;
};

// One deployment over all shards, as the head is told it. Counts are since the start.
struct DeploymentTotals {
  std::string deployment;
  std::uint64_t in_flight = 0;
  std::uint64_t requests = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t rejected = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::chrono::microseconds ttft_sum{0};
  std::chrono::microseconds queue_wait_sum{0};
  std::uint64_t sent = 0;  // to a replica
};

// What the metrics page tells besides the counters.
struct GatewayFacts {
  std::uint64_t snapshot_version = 0;
  bool control_connected = false;
  bool draining = false;
};

// Owned by main; shards live as long as it does.
class Metrics {
 public:
  // A new shard, for one thread. Any thread.
  MetricsShard& add_shard();

  // The page in Prometheus text format 0.0.4. Any thread.
  std::string render(const GatewayFacts& facts) const;

  // Answer bytes written to clients since the start. Any thread.
  std::uint64_t bytes_sent() const;

  // Any thread. The "unknown" deployment is left out.
  std::vector<DeploymentTotals> totals() const;

 private:
  template <class Visit>
  void each_deployment(const Visit& visit) const;

  mutable std::mutex mutex_;  // guards the list, not the numbers
  std::deque<MetricsShard> shards_;
};

}  // namespace penstock::base
