#include "base/metrics_page.h"

#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/metric_table.h"
#include "base/rules_page.h"
#include "base/times_page.h"

namespace penstock::base {
namespace {

// One deployment's line in every family.
struct Row {
  std::string label;
  const Metrics::Parts* parts;
  bool is_known;  // it is a deployment
};
using Rows = std::vector<Row>;

std::string deployment_label(std::string_view name) { return label("deployment", name); }

void add_requests(Exposition& page, const Rows& rows) {
  page.family(metric::kRequests);
  for (const Row& row : rows) {
    std::map<std::pair<Outcome, unsigned>, std::uint64_t> sums;
    for (const auto& part : *row.parts) {
      part->each_settled([&sums](Outcome outcome, unsigned status, std::uint64_t count) {
        sums[{outcome, status}] += count;
      });
    }
    for (const auto& [key, count] : sums) {
      page.sample(row.label + "," + label("outcome", name(key.first)) + "," +
                      label("code", std::to_string(key.second)),
                  count);
    }
  }
}

// Those that alerts look at stand there before the first, since nothing grows from nothing.
void add_drops(Exposition& page, const Rows& rows) {
  page.family(metric::kDrops);
  for (const Row& row : rows) {
    std::map<std::string_view, std::uint64_t> sums;
    if (row.is_known) {
      sums = {{"queue_full", 0}, {"wait_exceeded", 0}, {"queue_deadline", 0}, {"budget", 0}};
    }
    for (const auto& part : *row.parts) {
      part->each_dropped(
          [&sums](std::string_view reason, std::uint64_t count) { sums[reason] += count; });
    }
    for (const auto& [reason, count] : sums) {
      page.sample(row.label + "," + label("reason", reason), count);
    }
  }
}

void add_degraded(Exposition& page, const Rows& rows) {
  page.family(metric::kDegraded);
  for (const Row& row : rows) {
    std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> sums;
    for (const auto& part : *row.parts) {
      part->each_degraded(
          [&sums](std::string_view reason, std::string_view rung, std::uint64_t count) {
            sums[{reason, rung}] += count;
          });
    }
    for (const auto& [key, count] : sums) {
      page.sample(row.label + "," + label("reason", key.first) + "," + label("rung", key.second),
                  count);
    }
  }
}

// Those that happened.
void add_resumes(Exposition& page, const Rows& rows) {
  page.family(metric::kResumes);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kResumeReasons * kResumeOutcomes; ++i) {
      const auto reason = static_cast<ResumeReason>(i / kResumeOutcomes);
      const auto outcome = static_cast<ResumeOutcome>(i % kResumeOutcomes);
      std::uint64_t sum = 0;
      for (const auto& part : *row.parts) sum += part->resumes(reason, outcome);
      if (sum == 0) continue;
      page.sample(
          row.label + "," + label("reason", name(reason)) + "," + label("outcome", name(outcome)),
          sum);
    }
  }
}

struct CounterColumn {
  const Metric& metric;
  Counter DeploymentMetrics::*value;
};
constexpr std::array kCounters = {
    CounterColumn{metric::kEvents, &DeploymentMetrics::events},
    CounterColumn{metric::kAnswerBytes, &DeploymentMetrics::bytes},
    CounterColumn{metric::kAttempts, &DeploymentMetrics::attempts},
    CounterColumn{metric::kFailovers, &DeploymentMetrics::failovers},
    CounterColumn{metric::kPromptTokens, &DeploymentMetrics::prompt_tokens},
    CounterColumn{metric::kCompletionTokens, &DeploymentMetrics::completion_tokens},
    CounterColumn{metric::kCachedTokens, &DeploymentMetrics::cached_tokens},
    CounterColumn{metric::kPrefixHits, &DeploymentMetrics::prefix_hits},
};

struct HistogramColumn {
  const Metric& metric;
  Histogram DeploymentMetrics::*value;
};
constexpr std::array kHistograms = {
    HistogramColumn{metric::kEngineTtft, &DeploymentMetrics::engine_ttft},
    HistogramColumn{metric::kEstimateError, &DeploymentMetrics::estimate_error},
    HistogramColumn{metric::kSilence, &DeploymentMetrics::silence},
    HistogramColumn{metric::kResumePause, &DeploymentMetrics::pause},
    HistogramColumn{metric::kGeneration, &DeploymentMetrics::generation},
    HistogramColumn{metric::kProgram, &DeploymentMetrics::program},
    HistogramColumn{metric::kEngineCall, &DeploymentMetrics::engine_call},
};

void add_counters(Exposition& page, const Rows& rows) {
  for (const CounterColumn& column : kCounters) {
    page.family(column.metric);
    for (const Row& row : rows) {
      std::uint64_t sum = 0;
      for (const auto& part : *row.parts) sum += ((*part).*column.value).value();
      page.sample(row.label, sum);
    }
  }
  page.family(metric::kInFlight);
  for (const Row& row : rows) {
    std::int64_t sum = 0;
    for (const auto& part : *row.parts) sum += part->in_flight.value();
    page.sample(row.label, sum);
  }
}

// One that never observed anything would be many lines of zeros.
void add_histograms(Exposition& page, const Rows& rows) {
  for (const HistogramColumn& column : kHistograms) {
    page.family(column.metric);
    for (const Row& row : rows) {
      HistogramSum sum;
      for (const auto& part : *row.parts) sum.add((*part).*column.value);
      if (sum.observed > 0) page.histogram(row.label, sum);
    }
  }
}

struct ShardCounter {
  const Metric& metric;
  Counter MetricsShard::*value;
};
constexpr std::array kShardCounters = {
    ShardCounter{metric::kSentBytes, &MetricsShard::bytes_sent},
    ShardCounter{metric::kConnectionsAccepted, &MetricsShard::connections_accepted},
    ShardCounter{metric::kConnectionsRefused, &MetricsShard::connections_refused},
    ShardCounter{metric::kConnectionsEvicted, &MetricsShard::connections_evicted},
    ShardCounter{metric::kTlsHandshakes, &MetricsShard::tls_handshakes},
    ShardCounter{metric::kTlsHandshakesFailed, &MetricsShard::tls_handshakes_failed},
    ShardCounter{metric::kBadRequests, &MetricsShard::bad_requests},
    ShardCounter{metric::kKeysRefused, &MetricsShard::keys_refused},
    ShardCounter{metric::kBrokenRequests, &MetricsShard::broken_requests},
    ShardCounter{metric::kResumeNoRoom, &MetricsShard::resume_no_room},
    ShardCounter{metric::kHeartbeats, &MetricsShard::heartbeats},
};

void add_single(Exposition& page, const Metric& metric, auto value) {
  page.family(metric);
  page.sample("", value);
}

void add_shards(Exposition& page, std::span<const MetricsShard* const> shards) {
  std::int64_t connections = 0;
  std::int64_t sessions = 0;
  for (const MetricsShard* shard : shards) {
    connections += shard->connections.value();
    sessions += shard->sessions.value();
  }
  add_single(page, metric::kConnections, connections);
  add_single(page, metric::kSessions, sessions);
  for (const ShardCounter& counter : kShardCounters) {
    std::uint64_t sum = 0;
    for (const MetricsShard* shard : shards) sum += (shard->*counter.value).value();
    add_single(page, counter.metric, sum);
  }
}

// Deployments that nobody asks and nothing is said of are left out.
class Standings {
 public:
  Standings(const GatewayFacts& facts, const Rows& rows) {
    std::unordered_set<std::string_view> asked;
    for (const Row& row : rows) asked.insert(row.label);
    for (const DeploymentFacts& one : facts.deployments) {
      std::string text = deployment_label(one.name);
      const bool stirs = one.queued + one.broken + one.moving > 0 ||
                         one.estimated_wait.count() > 0 || !one.ejections.empty();
      if (stirs || asked.contains(text)) told_.emplace_back(std::move(text), &one);
    }
  }

  void add_to(Exposition& page) const {
    page.family(metric::kQueuedNow);
    for (const auto& [text, one] : told_) page.sample(text, one->queued);
    page.family(metric::kToGoOn);
    for (const auto& [text, one] : told_) {
      page.sample(text + "," + label("state", "broken"), one->broken);
      page.sample(text + "," + label("state", "running"), one->moving);
    }
    page.family(metric::kEstimatedWait);
    for (const auto& [text, one] : told_) {
      page.sample(text, std::chrono::duration<double>(one->estimated_wait).count());
    }
    page.family(metric::kEjections);
    for (const auto& [text, one] : told_) {
      for (const auto& [reason, count] : one->ejections) {
        page.sample(text + "," + label("reason", reason), count);
      }
    }
  }

 private:
  std::vector<std::pair<std::string, const DeploymentFacts*>> told_;
};

void add_tenant_ends(Exposition& page, std::span<const MetricsShard* const> shards) {
  std::map<std::string, std::array<std::uint64_t, kOutcomes>> sums;
  for (const MetricsShard* shard : shards) {
    shard->each_tenant([&sums](const std::string& tenant, const TenantMetrics& numbers) {
      for (std::size_t i = 0; i < kOutcomes; ++i) sums[tenant][i] += numbers.settled[i].value();
    });
  }
  page.family(metric::kTenantRequests);
  for (const auto& [tenant, counts] : sums) {
    for (std::size_t i = 0; i < kOutcomes; ++i) {
      if (counts[i] == 0) continue;
      page.sample(label("tenant", tenant) + "," + label("outcome", name(static_cast<Outcome>(i))),
                  counts[i]);
    }
  }
}

struct TenantColumn {
  const Metric& metric;
  std::uint64_t TenantFacts::*value;
};
constexpr std::array kTenantColumns = {
    TenantColumn{metric::kTenantLimited, &TenantFacts::limited},
    TenantColumn{metric::kTenantPromptTokens, &TenantFacts::prompt_tokens},
    TenantColumn{metric::kTenantCompletionTokens, &TenantFacts::completion_tokens},
    TenantColumn{metric::kTenantCachedTokens, &TenantFacts::cached_tokens},
};

// Those that share a label are one row.
std::map<std::string_view, std::uint64_t> sums_of(const std::vector<TenantFacts>& tenants,
                                                  std::uint64_t TenantFacts::*value) {
  std::map<std::string_view, std::uint64_t> sums;
  for (const TenantFacts& one : tenants) sums[one.tenant] += one.*value;
  return sums;
}

void add_tenants(Exposition& page, const std::vector<TenantFacts>& tenants) {
  for (const TenantColumn& column : kTenantColumns) {
    page.family(column.metric);
    for (const auto& [tenant, sum] : sums_of(tenants, column.value)) {
      page.sample(label("tenant", tenant), sum);
    }
  }
  constexpr double kNano = 1e-9;
  page.family(metric::kTenantCost);
  for (const auto& [tenant, sum] : sums_of(tenants, &TenantFacts::cost_nanousd)) {
    page.sample(label("tenant", tenant), static_cast<double>(sum) * kNano);
  }
}

void add_traces(Exposition& page, const TraceFacts& traces) {
  add_single(page, metric::kTracesSent, traces.sent);
  page.family(metric::kTracesDropped);
  for (const auto& [reason, count] : traces.dropped) page.sample(label("reason", reason), count);
}

void add_facts(Exposition& page, const GatewayFacts& facts) {
  page.family(metric::kHeldBytes);
  page.sample(label("of", "requests"), facts.request_bytes_held);
  page.sample(label("of", "answers"), facts.answer_bytes_held);
  page.sample(label("of", "shadows"), facts.shadow_bytes_held);
  page.sample(label("of", "resumes"), facts.resume_bytes_held);
  add_single(page, metric::kSnapshotVersion, facts.snapshot_version);
  add_single(page, metric::kControlConnected, facts.control_connected ? 1 : 0);
  add_single(page, metric::kDraining, facts.draining ? 1 : 0);
  page.family(metric::kBuildInfo);
  page.sample(label("version", version()), 1);
}

}  // namespace

std::string metrics_page(const Metrics::Deployments& deployments,
                         std::span<const MetricsShard* const> shards, const GatewayFacts& facts,
                         TextFormat format) {
  Rows rows;
  rows.reserve(deployments.size());
  for (const auto& [name, parts] : deployments) {
    rows.push_back({deployment_label(name), &parts, name != kUnknownDeployment});
  }
  Exposition page(format);
  add_requests(page, rows);
  add_drops(page, rows);
  add_degraded(page, rows);
  add_resumes(page, rows);
  add_counters(page, rows);
  add_histograms(page, rows);
  add_times(page, deployments);
  Standings(facts, rows).add_to(page);
  add_tenant_ends(page, shards);
  add_tenants(page, facts.tenants);
  add_shards(page, shards);
  add_shadows(page, facts.shadows);
  add_canaries(page, facts.canaries);
  add_programs(page, facts.programs);
  add_traces(page, facts.traces);
  add_explain(page, facts.explain);
  add_facts(page, facts);
  return page.take();
}

}  // namespace penstock::base
