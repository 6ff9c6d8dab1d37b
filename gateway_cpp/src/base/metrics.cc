#include "base/metrics.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/config.h"

namespace penstock::base {
namespace {

constexpr std::array<double, Histogram::kBuckets - 1> kBounds = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25,    0.5,    1,       2.5,    5,     10,     30,    60,   180,   600};

constexpr std::array kOutcomeNames = {std::string_view("succeeded"), std::string_view("failed"),
                                      std::string_view("rejected"), std::string_view("cancelled"),
                                      std::string_view("invalid")};

constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "parse", "resolve", "admit", "select", "open", "stream", "settle"};

// A histogram summed over shards.
struct HistogramSum {
  std::array<std::uint64_t, Histogram::kBuckets> counts{};
  std::uint64_t sum_ns = 0;

  void add(const Histogram& histogram) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += histogram.count(i);
    sum_ns += histogram.sum_ns();
  }
};

struct DeploymentSum {
  std::int64_t in_flight = 0;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failovers = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;
  HistogramSum ttft;
  HistogramSum queue_wait;
  HistogramSum duration;
  HistogramSum estimate_error;
  std::map<std::string_view, std::uint64_t> dropped;
  std::map<std::pair<Outcome, unsigned>, std::uint64_t> settled;
};

std::string escape_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Writes one page.
class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "penstock_gateway_" + std::string(name);
    out_ += "# HELP " + name_ + " " + std::string(help) + "\n";
    out_ += "# TYPE " + name_ + " " + std::string(type) + "\n";
  }

  template <class Number>
  void sample(const std::string& labels, Number value, std::string_view suffix = "") {
    out_ += name_;
    out_ += suffix;
    if (!labels.empty()) out_ += "{" + labels + "}";
    out_ += " " + std::to_string(value) + "\n";
  }

  void histogram(const std::string& labels, const HistogramSum& sum) {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < sum.counts.size(); ++i) {
      seen += sum.counts[i];
      const std::string bound = i < kBounds.size() ? number_text(kBounds[i]) : "+Inf";
      std::string bucket = labels;
      bucket.append(",le=\"").append(bound).append("\"");
      sample(bucket, seen, "_bucket");
    }
    out_ +=
        name_ + "_sum{" + labels + "} " + number_text(static_cast<double>(sum.sum_ns) / 1e9) + "\n";
    sample(labels, seen, "_count");
  }

  std::string take() { return std::move(out_); }

 private:
  std::string name_;
  std::string out_;
};

using Sums = std::map<std::string, DeploymentSum>;

std::string deployment_label(const std::string& name) {
  return "deployment=\"" + escape_label(name) + "\"";
}

void render_requests(Page& page, const Sums& sums) {
  page.family("requests_total", "counter", "Requests settled, by outcome and HTTP status.");
  for (const auto& [deployment, sum] : sums) {
    for (const auto& [key, count] : sum.settled) {
      page.sample(deployment_label(deployment) + ",outcome=\"" + std::string(name(key.first)) +
                      "\",code=\"" + std::to_string(key.second) + "\"",
                  count);
    }
  }
}

void render_drops(Page& page, const Sums& sums) {
  page.family("drops_total", "counter", "Requests refused or given up in the queue, by reason.");
  for (const auto& [deployment, sum] : sums) {
    for (const auto& [reason, count] : sum.dropped) {
      page.sample(deployment_label(deployment) + ",reason=\"" + std::string(reason) + "\"", count);
    }
  }
}

void render_counters(Page& page, const Sums& sums) {
  struct Column {
    std::string_view name;
    std::string_view help;
    std::uint64_t DeploymentSum::*value;
  };
  constexpr std::array<Column, 6> kColumns = {{
      {"events_total", "SSE events written to clients.", &DeploymentSum::events},
      {"answer_bytes_total", "Answer bytes written to clients.", &DeploymentSum::bytes},
      {"failovers_total", "Further replicas tried before the first byte.",
       &DeploymentSum::failovers},
      {"prompt_tokens_total", "Prompt tokens, as replicas report them.",
       &DeploymentSum::prompt_tokens},
      {"completion_tokens_total", "Generated tokens, as replicas report them.",
       &DeploymentSum::completion_tokens},
      {"cached_tokens_total", "Prompt tokens that replicas found in their caches.",
       &DeploymentSum::cached_tokens},
  }};
  for (const Column& column : kColumns) {
    page.family(column.name, "counter", column.help);
    for (const auto& [deployment, sum] : sums) {
      page.sample(deployment_label(deployment), sum.*column.value);
    }
  }
  page.family("in_flight", "gauge", "Requests opened and not settled.");
  for (const auto& [deployment, sum] : sums) {
    page.sample(deployment_label(deployment), sum.in_flight);
  }
}

void render_histograms(Page& page, const Sums& sums) {
  struct Column {
    std::string_view name;
    std::string_view help;
    HistogramSum DeploymentSum::*value;
  };
  constexpr std::array<Column, 4> kColumns = {{
      {"ttft_seconds", "Request read to first answer byte.", &DeploymentSum::ttft},
      {"queue_wait_seconds", "Admission to send.", &DeploymentSum::queue_wait},
      {"request_duration_seconds", "Request read to settled.", &DeploymentSum::duration},
      {"wait_estimate_error_ratio", "Of waits over 100 ms: |estimated - real| / real.",
       &DeploymentSum::estimate_error},
  }};
  for (const Column& column : kColumns) {
    page.family(column.name, "histogram", column.help);
    for (const auto& [deployment, sum] : sums) {
      page.histogram(deployment_label(deployment), sum.*column.value);
    }
  }
}

// What is counted for the whole gateway.
struct ProcessSum {
  std::int64_t connections = 0;
  std::int64_t sessions = 0;
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t connections_evicted = 0;
  std::uint64_t tls_handshakes = 0;
  std::uint64_t tls_handshakes_failed = 0;
  std::uint64_t bad_requests = 0;
  std::uint64_t broken_requests = 0;
  std::uint64_t heartbeats = 0;
  std::array<HistogramSum, kPhases> phases;

  void add(const MetricsShard& shard) {
    connections += shard.connections.value();
    sessions += shard.sessions.value();
    connections_total += shard.connections_total.value();
    connections_refused += shard.connections_refused.value();
    connections_evicted += shard.connections_evicted.value();
    tls_handshakes += shard.tls_handshakes.value();
    tls_handshakes_failed += shard.tls_handshakes_failed.value();
    bad_requests += shard.bad_requests.value();
    broken_requests += shard.broken_requests.value();
    heartbeats += shard.heartbeats.value();
    for (std::size_t i = 0; i < kPhases; ++i) phases[i].add(shard.phases[i]);
  }
};

void render_process(Page& page, const ProcessSum& sum) {
  const auto single = [&page](std::string_view name, std::string_view type, std::string_view help,
                              auto value) {
    page.family(name, type, help);
    page.sample("", value);
  };
  single("connections", "gauge", "Open client connections.", sum.connections);
  single("sessions", "gauge", "Open sessions to replicas.", sum.sessions);
  single("connections_total", "counter", "Client connections accepted.", sum.connections_total);
  single("connections_refused_total", "counter", "Client connections closed at the limit.",
         sum.connections_refused);
  single("connections_evicted_total", "counter",
         "Client connections without a request that gave way to others at the limit.",
         sum.connections_evicted);
  single("tls_handshakes_total", "counter", "TLS handshakes that came to an end, good or bad.",
         sum.tls_handshakes);
  single("tls_handshakes_failed_total", "counter",
         "TLS handshakes that failed, or whose client left, took too long or spoke plain HTTP.",
         sum.tls_handshakes_failed);
  single("bad_requests_total", "counter", "HTTP requests that could not be read.",
         sum.bad_requests);
  single("broken_requests_total", "counter", "Requests that ended by a fault of the gateway's own.",
         sum.broken_requests);
  single("heartbeats_total", "counter", "SSE comments written in silence.", sum.heartbeats);
  page.family("phase_seconds", "histogram", "Time in each phase of a request.");
  for (std::size_t i = 0; i < kPhases; ++i) {
    page.histogram("phase=\"" + std::string(kPhaseNames[i]) + "\"", sum.phases[i]);
  }
}

void render_facts(Page& page, const GatewayFacts& facts) {
  page.family("snapshot_version", "gauge", "Version of the route snapshot in force.");
  page.sample("", facts.snapshot_version);
  page.family("control_connected", "gauge", "1 while the stream of route snapshots is open.");
  page.sample("", facts.control_connected ? 1 : 0);
  page.family("draining", "gauge", "1 after SIGTERM.");
  page.sample("", facts.draining ? 1 : 0);
  page.family("build_info", "gauge", "Always 1; the label says which version runs.");
  page.sample("version=\"" + std::string(version()) + "\"", 1);
}

}  // namespace

std::string_view name(Outcome outcome) { return kOutcomeNames[static_cast<std::size_t>(outcome)]; }
std::string_view name(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

std::span<const double, Histogram::kBuckets - 1> Histogram::bounds() { return kBounds; }

void Histogram::observe(std::chrono::nanoseconds duration) {
  const double seconds = static_cast<double>(duration.count()) / 1e9;
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  counts_[static_cast<std::size_t>(bucket)].add();
  sum_ns_.add(static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0)));
}

void DeploymentMetrics::settled(Outcome outcome, unsigned status) {
  for (Settled& row : settled_) {
    if (row.outcome == outcome && row.status == status) {
      row.count.add();
      return;
    }
  }
  const std::lock_guard lock(mutex_);
  settled_.emplace_back(outcome, status).count.add();
}

void DeploymentMetrics::dropped(std::string_view reason) {
  for (Dropped& row : dropped_) {
    if (row.reason == reason) return row.count.add();
  }
  const std::lock_guard lock(mutex_);
  dropped_.emplace_back(reason).count.add();
}

void DeploymentMetrics::note_estimate(std::chrono::nanoseconds estimated,
                                      std::chrono::nanoseconds real) {
  constexpr std::chrono::milliseconds kShort{100};
  if (real <= kShort) return;
  const auto off = std::chrono::abs(estimated - real);
  const double ratio = static_cast<double>(off.count()) / static_cast<double>(real.count());
  estimate_error.observe(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(ratio)));
}

DeploymentMetrics& MetricsShard::deployment(std::string_view name) {
  for (DeploymentMetrics& deployment : deployments_) {
    if (deployment.name() == name) return deployment;
  }
  const std::lock_guard lock(mutex_);
  return deployments_.emplace_back(std::string(name));
}

MetricsShard& Metrics::add_shard() {
  const std::lock_guard lock(mutex_);
  return shards_.emplace_back();
}

template <class Visit>
void Metrics::each_deployment(const Visit& visit) const {
  const std::lock_guard lock(mutex_);
  for (const MetricsShard& shard : shards_) {
    const std::lock_guard shard_lock(shard.mutex_);
    for (const DeploymentMetrics& deployment : shard.deployments_) {
      const std::lock_guard rows_lock(deployment.mutex_);
      visit(deployment);
    }
  }
}

std::string Metrics::render(const GatewayFacts& facts) const {
  Sums sums;
  each_deployment([&sums](const DeploymentMetrics& part) {
    DeploymentSum& sum = sums[part.name_];
    sum.in_flight += part.in_flight.value();
    sum.events += part.events.value();
    sum.bytes += part.bytes.value();
    sum.failovers += part.failovers.value();
    sum.prompt_tokens += part.prompt_tokens.value();
    sum.completion_tokens += part.completion_tokens.value();
    sum.cached_tokens += part.cached_tokens.value();
    sum.estimate_error.add(part.estimate_error);
    for (const auto& row : part.dropped_) sum.dropped[row.reason] += row.count.value();
    sum.ttft.add(part.ttft);
    sum.queue_wait.add(part.queue_wait);
    sum.duration.add(part.duration);
    for (const auto& row : part.settled_) {
      sum.settled[{row.outcome, row.status}] += row.count.value();
    }
  });
  ProcessSum process;
  {
    const std::lock_guard lock(mutex_);
    for (const MetricsShard& shard : shards_) process.add(shard);
  }
  Page page;
  render_requests(page, sums);
  render_drops(page, sums);
  render_counters(page, sums);
  render_histograms(page, sums);
  render_process(page, process);
  render_facts(page, facts);
  return page.take();
}

std::uint64_t Metrics::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const MetricsShard& shard : shards_) sum += shard.bytes_sent.value();
  return sum;
}

std::vector<DeploymentTotals> Metrics::totals() const {
  std::map<std::string, DeploymentTotals> sums;
  each_deployment([&sums](const DeploymentMetrics& part) {
    if (part.name_ == kUnknownDeployment) return;
    DeploymentTotals& sum = sums[part.name_];
    sum.deployment = part.name_;
    sum.in_flight += static_cast<std::uint64_t>(std::max<std::int64_t>(part.in_flight.value(), 0));
    for (const auto& row : part.settled_) {
      const std::uint64_t count = row.count.value();
      sum.requests += count;
      if (row.outcome == Outcome::kSucceeded) sum.succeeded += count;
      if (row.outcome == Outcome::kFailed) sum.failed += count;
      if (row.outcome == Outcome::kRejected) sum.rejected += count;
      if (row.outcome == Outcome::kCancelled) sum.cancelled += count;
    }
    sum.prompt_tokens += part.prompt_tokens.value();
    sum.completion_tokens += part.completion_tokens.value();
    sum.ttft_sum += std::chrono::microseconds(part.ttft.sum_ns() / 1000);
    sum.queue_wait_sum += std::chrono::microseconds(part.queue_wait.sum_ns() / 1000);
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) sum.sent += part.queue_wait.count(i);
  });
  std::vector<DeploymentTotals> out;
  out.reserve(sums.size());
  for (auto& [name, sum] : sums) out.push_back(std::move(sum));
  return out;
}

}  // namespace penstock::base
