#include "http/times_page.h"

#include <array>
#include <map>
#include <string>
#include <utility>

namespace penstock::http {
namespace {

using base::Exposition;
using base::HistogramSum;
using base::label;
using base::Metrics;
using base::Outcome;
using base::RequestTimes;
namespace metric = base::metric;

// Which gateway it is that answers, in the conventions' words.
constexpr std::string_view kProvider = "penstock";

struct TracedColumn {
  const base::Metric& metric;
  base::TracedHistogram RequestTimes::*value;
};
constexpr std::array kTraced = {
    TracedColumn{metric::kRequestDuration, &RequestTimes::duration},
    TracedColumn{metric::kTimeToFirstToken, &RequestTimes::ttft},
    TracedColumn{metric::kTimePerOutputToken, &RequestTimes::token_time},
};

std::string outcome_labels(std::string_view deployment, Outcome outcome) {
  return label("deployment", deployment) + "," + label("outcome", name(outcome));
}

std::string gen_ai_labels(std::string_view deployment, Outcome outcome,
                          std::string_view operation) {
  std::string labels = outcome_labels(deployment, outcome);
  labels += "," + label("gen_ai_operation_name", operation);
  labels += "," + label("gen_ai_provider_name", kProvider);
  labels += "," + label("gen_ai_request_model", deployment);
  if (outcome != Outcome::kSucceeded) labels += "," + label("error_type", name(outcome));
  return labels;
}

void add_traced(Exposition& page, const Metrics::Deployments& deployments,
                const TracedColumn& column) {
  page.family(column.metric);
  for (const auto& [deployment, parts] : deployments) {
    std::map<std::pair<Outcome, std::string_view>, HistogramSum> sums;
    for (const auto& part : parts) {
      part->each_times([&](const RequestTimes& times) {
        sums[{times.outcome(), times.operation()}].add(times.*column.value);
      });
    }
    for (const auto& [key, sum] : sums) {
      if (sum.observed == 0) continue;
      page.histogram(gen_ai_labels(deployment, key.first, key.second), sum);
    }
  }
}

// A histogram for each outcome, whatever was asked for. `of`: the one of these times.
void add_by_outcome(Exposition& page, const Metrics::Deployments& deployments,
                    const std::string& more, const auto& of) {
  for (const auto& [deployment, parts] : deployments) {
    std::map<Outcome, HistogramSum> sums;
    for (const auto& part : parts) {
      part->each_times([&](const RequestTimes& times) { sums[times.outcome()].add(of(times)); });
    }
    for (const auto& [outcome, sum] : sums) {
      if (sum.observed > 0) page.histogram(outcome_labels(deployment, outcome) + more, sum);
    }
  }
}

}  // namespace

void add_times(Exposition& page, const Metrics::Deployments& deployments) {
  for (const TracedColumn& column : kTraced) add_traced(page, deployments, column);
  page.family(metric::kQueueWait);
  add_by_outcome(page, deployments, "", [](const RequestTimes& times) -> const base::Histogram& {
    return times.queue_wait;
  });
  page.family(metric::kPhase);
  for (std::size_t i = 0; i < base::kPhases; ++i) {
    add_by_outcome(
        page, deployments, "," + label("phase", name(static_cast<base::Phase>(i))),
        [i](const RequestTimes& times) -> const base::Histogram& { return times.phases[i]; });
  }
}

}  // namespace penstock::http
