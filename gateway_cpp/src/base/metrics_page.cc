#include "base/metrics_page.h"

#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/exposition.h"
#include "base/rules_page.h"

namespace penstock::base {
namespace {

// One deployment's line in every family.
struct Row {
  std::string label;
  const Metrics::Parts* parts;
};
using Rows = std::vector<Row>;

std::string deployment_label(std::string_view name) { return label("deployment", name); }

void add_requests(Exposition& page, const Rows& rows) {
  page.family("requests_total", "counter",
              "Requests settled, by outcome and HTTP status; one that was moved counts where it "
              "failed, too.");
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

void add_drops(Exposition& page, const Rows& rows) {
  page.family("drops_total", "counter", "Requests refused or given up in the queue, by reason.");
  for (const Row& row : rows) {
    std::map<std::string_view, std::uint64_t> sums;
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
  page.family("degraded_total", "counter",
              "Answers owed to a rung of the deployment's ladder, by reason and rung.");
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
  page.family("resumes_total", "counter",
              "Answers that broke or were handed over, by reason and what came of it.");
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
  std::string_view name;
  std::string_view help;
  Counter DeploymentMetrics::*value;
};
constexpr std::array kCounters = {
    CounterColumn{"events_total", "SSE events written to clients.", &DeploymentMetrics::events},
    CounterColumn{"answer_bytes_total", "Answer bytes written to clients.",
                  &DeploymentMetrics::bytes},
    CounterColumn{"attempts_total", "Calls sent to replicas.", &DeploymentMetrics::attempts},
    CounterColumn{"failovers_total", "Further replicas tried before the first byte.",
                  &DeploymentMetrics::failovers},
    CounterColumn{"prompt_tokens_total", "Prompt tokens, as replicas report them.",
                  &DeploymentMetrics::prompt_tokens},
    CounterColumn{"completion_tokens_total", "Generated tokens, as replicas report them.",
                  &DeploymentMetrics::completion_tokens},
    CounterColumn{"cached_tokens_total", "Prompt tokens that replicas found in their caches.",
                  &DeploymentMetrics::cached_tokens},
    CounterColumn{"prefix_hits_total", "Answers whose prompt began in a replica's cache.",
                  &DeploymentMetrics::prefix_hits},
};

struct HistogramColumn {
  std::string_view name;
  std::string_view help;
  Histogram DeploymentMetrics::*value;
};
constexpr std::array kHistograms = {
    HistogramColumn{"ttft_seconds", "Request read to first answer byte.", &DeploymentMetrics::ttft},
    HistogramColumn{"engine_ttft_seconds",
                    "Accepted by the engine to its first token, as it reports.",
                    &DeploymentMetrics::engine_ttft},
    HistogramColumn{"queue_wait_seconds", "Admission to send.", &DeploymentMetrics::queue_wait},
    HistogramColumn{"wait_estimate_error_ratio", "Of waits over 100 ms: |estimated - real| / real.",
                    &DeploymentMetrics::estimate_error},
    HistogramColumn{"inter_token_seconds",
                    "Of whole streams: mean time for each token after the first.",
                    &DeploymentMetrics::token_time},
    HistogramColumn{"stream_silence_seconds",
                    "Of whole streams: longest time between two writes, to 50 ms.",
                    &DeploymentMetrics::silence},
    HistogramColumn{"resume_pause_seconds",
                    "Of answers that went on at another replica: broken to their next event.",
                    &DeploymentMetrics::pause},
    HistogramColumn{"generation_seconds", "Of whole streams: first byte to last.",
                    &DeploymentMetrics::generation},
    HistogramColumn{"program_seconds",
                    "A router program was asked to its answer, engine calls included.",
                    &DeploymentMetrics::program},
    HistogramColumn{"engine_call_seconds", "Engine calls of a router program, begun to answered.",
                    &DeploymentMetrics::engine_call},
    HistogramColumn{"request_duration_seconds", "Request read to settled.",
                    &DeploymentMetrics::duration},
};

void add_counters(Exposition& page, const Rows& rows) {
  for (const CounterColumn& column : kCounters) {
    page.family(column.name, "counter", column.help);
    for (const Row& row : rows) {
      std::uint64_t sum = 0;
      for (const auto& part : *row.parts) sum += ((*part).*column.value).value();
      page.sample(row.label, sum);
    }
  }
  page.family("in_flight", "gauge", "Requests opened and not settled.");
  for (const Row& row : rows) {
    std::int64_t sum = 0;
    for (const auto& part : *row.parts) sum += part->in_flight.value();
    page.sample(row.label, sum);
  }
}

// One that never observed anything would be many lines of zeros.
void add_histograms(Exposition& page, const Rows& rows) {
  for (const HistogramColumn& column : kHistograms) {
    page.family(column.name, "histogram", column.help);
    for (const Row& row : rows) {
      HistogramSum sum;
      for (const auto& part : *row.parts) sum.add((*part).*column.value);
      if (sum.observed > 0) page.histogram(row.label, sum);
    }
  }
}

struct ShardCounter {
  std::string_view name;
  std::string_view help;
  Counter MetricsShard::*value;
};
constexpr std::array kShardCounters = {
    ShardCounter{"sent_bytes_total", "Answer bytes written to clients, of all deployments.",
                 &MetricsShard::bytes_sent},
    ShardCounter{"connections_total", "Client connections accepted.",
                 &MetricsShard::connections_total},
    ShardCounter{"connections_refused_total", "Client connections closed at the limit.",
                 &MetricsShard::connections_refused},
    ShardCounter{"connections_evicted_total",
                 "Client connections without a request that gave way to others at the limit.",
                 &MetricsShard::connections_evicted},
    ShardCounter{"tls_handshakes_total", "TLS handshakes that came to an end, good or bad.",
                 &MetricsShard::tls_handshakes},
    ShardCounter{"tls_handshakes_failed_total",
                 "TLS handshakes that failed, or whose client left, took too long or spoke plain "
                 "HTTP.",
                 &MetricsShard::tls_handshakes_failed},
    ShardCounter{"bad_requests_total", "HTTP requests that could not be read.",
                 &MetricsShard::bad_requests},
    ShardCounter{"keys_refused_total", "Requests without a key that is known and good.",
                 &MetricsShard::keys_refused},
    ShardCounter{"broken_requests_total", "Requests that ended by a fault of the gateway's own.",
                 &MetricsShard::broken_requests},
    ShardCounter{"resume_no_room_total",
                 "Streams that ran on without what they need to go on elsewhere: no room for it.",
                 &MetricsShard::resume_no_room},
    ShardCounter{"heartbeats_total", "SSE comments written in silence.", &MetricsShard::heartbeats},
};

void add_single(Exposition& page, std::string_view name, std::string_view type,
                std::string_view help, auto value) {
  page.family(name, type, help);
  page.sample("", value);
}

void add_shards(Exposition& page, std::span<const MetricsShard* const> shards) {
  std::int64_t connections = 0;
  std::int64_t sessions = 0;
  std::array<HistogramSum, kPhases> phases;
  for (const MetricsShard* shard : shards) {
    connections += shard->connections.value();
    sessions += shard->sessions.value();
    for (std::size_t i = 0; i < kPhases; ++i) phases[i].add(shard->phases[i]);
  }
  add_single(page, "connections", "gauge", "Open client connections.", connections);
  add_single(page, "sessions", "gauge", "Open sessions to replicas.", sessions);
  for (const ShardCounter& counter : kShardCounters) {
    std::uint64_t sum = 0;
    for (const MetricsShard* shard : shards) sum += (shard->*counter.value).value();
    add_single(page, counter.name, "counter", counter.help, sum);
  }
  page.family("phase_seconds", "histogram", "Time in each phase of a request.");
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (phases[i].observed == 0) continue;
    page.histogram(label("phase", name(static_cast<Phase>(i))), phases[i]);
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
    page.family("queued", "gauge", "Requests that wait for a place.");
    for (const auto& [text, one] : told_) page.sample(text, one->queued);
    page.family("to_go_on", "gauge",
                "Answers that wait for a place at another replica: broken ones, and those that run "
                "on meanwhile.");
    for (const auto& [text, one] : told_) {
      page.sample(text + "," + label("state", "broken"), one->broken);
      page.sample(text + "," + label("state", "running"), one->moving);
    }
    page.family("estimated_wait_seconds", "gauge", "How long a request that came now would wait.");
    for (const auto& [text, one] : told_) {
      page.sample(text, std::chrono::duration<double>(one->estimated_wait).count());
    }
    page.family("ejections_total", "counter",
                "Times that a replica was sent nothing more for a while, by reason.");
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
  page.family("tenant_requests_total", "counter", "Requests settled, by tenant and outcome.");
  for (const auto& [tenant, counts] : sums) {
    for (std::size_t i = 0; i < kOutcomes; ++i) {
      if (counts[i] == 0) continue;
      page.sample(label("tenant", tenant) + "," + label("outcome", name(static_cast<Outcome>(i))),
                  counts[i]);
    }
  }
}

struct TenantColumn {
  std::string_view name;
  std::string_view help;
  std::uint64_t TenantFacts::*value;
};
constexpr std::array kTenantColumns = {
    TenantColumn{"tenant_limited_total", "Requests refused by a limit of their tenant or key.",
                 &TenantFacts::limited},
    TenantColumn{"tenant_prompt_tokens_total", "Prompt tokens, as replicas report them.",
                 &TenantFacts::prompt_tokens},
    TenantColumn{"tenant_completion_tokens_total", "Completion tokens, likewise.",
                 &TenantFacts::completion_tokens},
    TenantColumn{"tenant_cached_tokens_total", "Prompt tokens that replicas found in their caches.",
                 &TenantFacts::cached_tokens},
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
    page.family(column.name, "counter", column.help);
    for (const auto& [tenant, sum] : sums_of(tenants, column.value)) {
      page.sample(label("tenant", tenant), sum);
    }
  }
  constexpr double kNano = 1e-9;
  page.family("tenant_cost_usd_total", "counter", "US dollars, where models have prices.");
  for (const auto& [tenant, sum] : sums_of(tenants, &TenantFacts::cost_nanousd)) {
    page.sample(label("tenant", tenant), static_cast<double>(sum) * kNano);
  }
}

void add_traces(Exposition& page, const TraceFacts& traces) {
  add_single(page, "traces_sent_total", "counter", "Requests whose spans a collector has taken.",
             traces.sent);
  page.family("traces_dropped_total", "counter",
              "Requests whose spans no collector has, by reason: too many waited, or it took none.");
  for (const auto& [reason, count] : traces.dropped) page.sample(label("reason", reason), count);
}

void add_facts(Exposition& page, const GatewayFacts& facts) {
  page.family("held_bytes", "gauge", "Bytes held, by what they are of.");
  page.sample(label("of", "requests"), facts.request_bytes_held);
  page.sample(label("of", "answers"), facts.answer_bytes_held);
  page.sample(label("of", "shadows"), facts.shadow_bytes_held);
  page.sample(label("of", "resumes"), facts.resume_bytes_held);
  add_single(page, "snapshot_version", "gauge", "Version of the route snapshot in force.",
             facts.snapshot_version);
  add_single(page, "control_connected", "gauge", "1 while the stream of route snapshots is open.",
             facts.control_connected ? 1 : 0);
  add_single(page, "draining", "gauge", "1 after SIGTERM.", facts.draining ? 1 : 0);
  page.family("build_info", "gauge", "Always 1; the label says which version runs.");
  page.sample(label("version", version()), 1);
}

}  // namespace

std::string metrics_page(const std::map<std::string, Metrics::Parts, std::less<>>& deployments,
                         std::span<const MetricsShard* const> shards, const GatewayFacts& facts) {
  Rows rows;
  rows.reserve(deployments.size());
  for (const auto& [name, parts] : deployments) rows.push_back({deployment_label(name), &parts});
  Exposition page;
  add_requests(page, rows);
  add_drops(page, rows);
  add_degraded(page, rows);
  add_resumes(page, rows);
  add_counters(page, rows);
  add_histograms(page, rows);
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
