// Counters without locks on the request path. Each I/O thread owns one MetricsShard and is its only
// writer; Metrics owns all shards and adds them up when somebody scrapes. Label sets are bounded:
// the deployment label is a name from the routes, or "unknown", and leaves with its deployment.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/deployment_metrics.h"
#include "base/metrics_values.h"

namespace penstock::base {

// The deployment label of requests that never came as far as a known name.
inline constexpr std::string_view kUnknownDeployment = "unknown";

// The tenant labels of requests without a key, and of tenants beyond those that have a label of
// their own. No tenant has such a name.
inline constexpr std::string_view kWithoutKey = "-";
inline constexpr std::string_view kOtherTenants = "_other";

class Metrics;

// What one tenant's requests came to, as one I/O thread counts them.
struct TenantMetrics {
  std::array<Counter, kOutcomes> settled;  // by outcome
};

// All numbers of one I/O thread.
class MetricsShard {
 public:
  explicit MetricsShard(Metrics& all) : all_(all) {}
  MetricsShard(const MetricsShard&) = delete;
  MetricsShard& operator=(const MetricsShard&) = delete;

  // The numbers of a deployment, made on first use. Owner thread only; a request keeps a copy, and
  // what it counts is shown as long as it does. The reference holds until the next call.
  const std::shared_ptr<DeploymentMetrics>& deployment(std::string_view name);

  // The numbers of a tenant, or of all that have no label of their own; empty: requests without a
  // key. Owner thread only.
  TenantMetrics& tenant(std::string_view id);
  // For readers of any thread: visit(label, numbers).
  template <class Visit>
  void each_tenant(const Visit& visit) const {
    const std::lock_guard lock(tenants_mutex_);
    for (const auto& [label, numbers] : tenants_) visit(label, numbers);
  }

  Counter bytes_sent;  // to clients, as they are written
  Gauge connections;   // open client connections
  Counter connections_accepted;
  Counter connections_refused;  // at the limit of connections
  Counter connections_evicted;  // that waited for a request and gave way to another
  Counter tls_handshakes;       // that came to an end, and of them
  Counter tls_handshakes_failed;
  Counter broken_requests;  // that ended by an exception: our own faults
  Gauge sessions;           // open sessions to replicas
  Counter bad_requests;     // HTTP that could not be read at all
  Counter keys_refused;     // requests without a key that is known and good
  Counter resume_no_room;   // streams that could go on nowhere else any more
  Counter heartbeats;       // SSE comments written in silence

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };

  Metrics& all_;
  std::unordered_map<std::string, std::shared_ptr<DeploymentMetrics>, Hash, std::equal_to<>>
      deployments_;
  mutable std::mutex tenants_mutex_;  // the owner takes it to add a row, readers to walk the rows
  std::unordered_map<std::string, TenantMetrics, Hash, std::equal_to<>> tenants_;  // by label
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
  std::uint64_t sent = 0;         // to a replica
  std::uint64_t resumed = 0;      // answers that went on at another replica
  std::uint64_t not_resumed = 0;  // that broke, and their clients were told
  struct Judged {
    std::uint64_t requests = 0;
    std::uint64_t bad = 0;  // of these
  };
  std::array<Judged, kObjectives> slo = {};  // by objective
};

// Owned by main; shards live as long as it does.
class Metrics {
 public:
  using Parts = std::vector<std::shared_ptr<DeploymentMetrics>>;  // of one deployment, by shard
  using Deployments = std::map<std::string, Parts, std::less<>>;

  // A new shard, for one thread. Any thread.
  MetricsShard& add_shard();

  // Forgets deployments that are none any more, as soon as no request counts in them; all shards of
  // one at once, so that no sum goes down while it is shown. One that comes back begins anew. Any
  // thread, about once a second.
  void keep_only(const std::function<bool(const std::string&)>& is_deployment);

  // For the page. Any thread.
  Deployments deployments() const;
  std::vector<const MetricsShard*> shards() const;

  // Answer bytes written to clients since the start. Any thread.
  std::uint64_t bytes_sent() const;

  // By which a tenant is told: its id, as long as there are labels left, which it then keeps as
  // long as the process lives, so that no sum ever goes down. Any thread.
  std::string_view tenant_label(std::string_view id) const;

  // Any thread. The "unknown" deployment is left out.
  std::vector<DeploymentTotals> totals() const;

 private:
  friend class MetricsShard;

  void enlist(const std::shared_ptr<DeploymentMetrics>& part);

  static constexpr std::size_t kMostTenants = 200;

  mutable std::mutex mutex_;                            // guards the lists, not the numbers
  mutable std::set<std::string, std::less<>> tenants_;  // that have a label; never one less
  mutable std::atomic<bool> tenants_full_{false};       // none comes to them: read without a lock
  std::deque<MetricsShard> shards_;
  Deployments deployments_;
};

}  // namespace penstock::base
