#include "http/metrics_page.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "admission/shadow_class.h"
#include "base/config.h"
#include "base/metric_table.h"
#include "http/rules_page.h"
#include "http/times_page.h"

namespace penstock::http {
namespace {

using admission::UsageCounts;
using base::Counter;
using base::DeploymentMetrics;
using base::Exposition;
using base::Histogram;
using base::label;
using base::Metric;
using base::Metrics;
using base::MetricsShard;
using base::Outcome;
using dispatch::DeploymentStanding;
namespace metric = base::metric;

// One deployment's line in every family.
struct Line {
  std::string label;
  const Metrics::Parts* parts;
  bool is_known;  // it is a deployment
};
using Lines = std::vector<Line>;
using Shards = std::vector<const MetricsShard*>;

std::string deployment_label(std::string_view name) { return label("deployment", name); }

void add_requests(Exposition& page, const Lines& lines) {
  page.family(metric::kRequests);
  for (const Line& line : lines) {
    std::map<std::pair<Outcome, unsigned>, std::uint64_t> sums;
    for (const auto& part : *line.parts) {
      part->each_settled([&sums](Outcome outcome, unsigned status, std::uint64_t count) {
        sums[{outcome, status}] += count;
      });
    }
    for (const auto& [key, count] : sums) {
      page.sample(line.label + "," + label("outcome", name(key.first)) + "," +
                      label("code", std::to_string(key.second)),
                  count);
    }
  }
}

// Those that alerts look at stand there before the first, since nothing grows from nothing.
void add_drops(Exposition& page, const Lines& lines) {
  page.family(metric::kDrops);
  for (const Line& line : lines) {
    std::map<std::string_view, std::uint64_t> sums;
    if (line.is_known) {
      sums = {{"queue_full", 0}, {"wait_exceeded", 0}, {"queue_deadline", 0}, {"budget", 0}};
    }
    for (const auto& part : *line.parts) {
      part->each_dropped(
          [&sums](std::string_view reason, std::uint64_t count) { sums[reason] += count; });
    }
    for (const auto& [reason, count] : sums) {
      page.sample(line.label + "," + label("reason", reason), count);
    }
  }
}

void add_degraded(Exposition& page, const Lines& lines) {
  page.family(metric::kDegraded);
  for (const Line& line : lines) {
    std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> sums;
    for (const auto& part : *line.parts) {
      part->each_degraded(
          [&sums](std::string_view reason, std::string_view rung, std::uint64_t count) {
            sums[{reason, rung}] += count;
          });
    }
    for (const auto& [key, count] : sums) {
      page.sample(line.label + "," + label("reason", key.first) + "," + label("rung", key.second),
                  count);
    }
  }
}

// Those that happened.
void add_resumes(Exposition& page, const Lines& lines) {
  page.family(metric::kResumes);
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < base::kResumeReasons * base::kResumeOutcomes; ++i) {
      const auto reason = static_cast<base::ResumeReason>(i / base::kResumeOutcomes);
      const auto outcome = static_cast<base::ResumeOutcome>(i % base::kResumeOutcomes);
      std::uint64_t sum = 0;
      for (const auto& part : *line.parts) sum += part->resumes(reason, outcome);
      if (sum == 0) continue;
      page.sample(
          line.label + "," + label("reason", name(reason)) + "," + label("outcome", name(outcome)),
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

void add_counters(Exposition& page, const Lines& lines) {
  for (const CounterColumn& column : kCounters) {
    page.family(column.metric);
    for (const Line& line : lines) {
      std::uint64_t sum = 0;
      for (const auto& part : *line.parts) sum += ((*part).*column.value).value();
      page.sample(line.label, sum);
    }
  }
  page.family(metric::kInFlight);
  for (const Line& line : lines) {
    std::int64_t sum = 0;
    for (const auto& part : *line.parts) sum += part->in_flight.value();
    page.sample(line.label, sum);
  }
}

// One that never observed anything would be many lines of zeros.
void add_histograms(Exposition& page, const Lines& lines) {
  for (const HistogramColumn& column : kHistograms) {
    page.family(column.metric);
    for (const Line& line : lines) {
      base::HistogramSum sum;
      for (const auto& part : *line.parts) sum.add((*part).*column.value);
      if (sum.observed > 0) page.histogram(line.label, sum);
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

void add_shards(Exposition& page, const Shards& shards) {
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

// Whether anything is said of it.
bool stirs(const DeploymentStanding& one) {
  return one.queued + one.broken + one.moving > 0 || one.estimated_wait.count() > 0 ||
         std::ranges::any_of(one.ejections, [](std::uint64_t count) { return count > 0; });
}

// Deployments that nobody asks and nothing is said of are left out.
class Standings {
 public:
  Standings(const GatewayFacts& facts, const Lines& lines) {
    std::unordered_set<std::string_view> asked;
    for (const Line& line : lines) asked.insert(line.label);
    for (const auto& [name, one] : facts.deployments) {
      std::string text = deployment_label(name);
      if (stirs(one) || asked.contains(text)) told_.emplace_back(std::move(text), &one);
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
      for (std::size_t i = 0; i < one->ejections.size(); ++i) {
        if (one->ejections[i] == 0) continue;
        page.sample(text + "," + label("reason", routing::kDoubtReasons[i]), one->ejections[i]);
      }
    }
  }

 private:
  std::vector<std::pair<std::string, const DeploymentStanding*>> told_;
};

void add_tenant_ends(Exposition& page, const Shards& shards) {
  std::map<std::string, std::array<std::uint64_t, base::kOutcomes>> sums;
  for (const MetricsShard* shard : shards) {
    shard->each_tenant([&sums](const std::string& tenant, const base::TenantMetrics& numbers) {
      for (std::size_t i = 0; i < base::kOutcomes; ++i)
        sums[tenant][i] += numbers.settled[i].value();
    });
  }
  page.family(metric::kTenantRequests);
  for (const auto& [tenant, counts] : sums) {
    for (std::size_t i = 0; i < base::kOutcomes; ++i) {
      if (counts[i] == 0) continue;
      page.sample(label("tenant", tenant) + "," + label("outcome", name(static_cast<Outcome>(i))),
                  counts[i]);
    }
  }
}

struct TenantColumn {
  const Metric& metric;
  std::uint64_t UsageCounts::*value;
};
constexpr std::array kTenantColumns = {
    TenantColumn{metric::kTenantLimited, &UsageCounts::rejected},
    TenantColumn{metric::kTenantPromptTokens, &UsageCounts::prompt_tokens},
    TenantColumn{metric::kTenantCompletionTokens, &UsageCounts::completion_tokens},
    TenantColumn{metric::kTenantCachedTokens, &UsageCounts::cached_tokens},
};

// Those that share a label are one line.
void add_tenants(Exposition& page, const Metrics& metrics, const GatewayFacts& facts) {
  std::map<std::string_view, UsageCounts> sums;
  for (const auto& [tenant, counts] : facts.tenants) {
    if (tenant != admission::kShadowTenant) sums[metrics.tenant_label(tenant)] += counts;
  }
  for (const TenantColumn& column : kTenantColumns) {
    page.family(column.metric);
    for (const auto& [tenant, sum] : sums) {
      page.sample(label("tenant", tenant), sum.*column.value);
    }
  }
  constexpr double kNano = 1e-9;
  page.family(metric::kTenantCost);
  for (const auto& [tenant, sum] : sums) {
    page.sample(label("tenant", tenant), static_cast<double>(sum.cost_nanousd) * kNano);
  }
}

void add_traces(Exposition& page, const observe::TraceCounts& traces) {
  add_single(page, metric::kTracesSent, traces.sent);
  page.family(metric::kTracesDropped);
  page.sample(label("reason", "queue_full"), traces.queue_full);
  page.sample(label("reason", "collector"), traces.collector);
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
  page.sample(label("version", base::version()), 1);
}

}  // namespace

std::string metrics_page(const Metrics& metrics, const GatewayFacts& facts,
                         base::TextFormat format) {
  const Metrics::Deployments deployments = metrics.deployments();
  const Shards shards = metrics.shards();
  Lines lines;
  lines.reserve(deployments.size());
  for (const auto& [name, parts] : deployments) {
    lines.push_back({deployment_label(name), &parts, name != base::kUnknownDeployment});
  }
  Exposition page(format);
  add_requests(page, lines);
  add_drops(page, lines);
  add_degraded(page, lines);
  add_resumes(page, lines);
  add_counters(page, lines);
  add_histograms(page, lines);
  add_times(page, deployments);
  Standings(facts, lines).add_to(page);
  add_tenant_ends(page, shards);
  add_tenants(page, metrics, facts);
  add_shards(page, shards);
  add_shadows(page, facts.shadows);
  add_canaries(page, facts.canaries);
  add_programs(page, facts.programs);
  add_traces(page, facts.traces);
  add_explain(page, facts.explain);
  add_facts(page, facts);
  return page.take();
}

}  // namespace penstock::http
