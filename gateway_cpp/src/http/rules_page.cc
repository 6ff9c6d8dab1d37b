#include "http/rules_page.h"

namespace penstock::http {
namespace {

using base::Exposition;
using base::label;
namespace metric = base::metric;

// Those that happened, by the names of `Outcome`.
template <class Outcome>
void add_outcomes(Exposition& page, const std::string& labels, const auto& counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    page.sample(labels + "," + label("outcome", name(static_cast<Outcome>(i))), counts[i]);
  }
}

}  // namespace

void add_shadows(Exposition& page, const std::vector<admission::ShadowRow>& shadows) {
  const auto label_of = [](const admission::ShadowRow& one) {
    return label("rule", one.name) + "," + label("uid", one.uid);
  };
  page.family(metric::kShadowRequests);
  for (const admission::ShadowRow& one : shadows) {
    add_outcomes<admission::ShadowOutcome>(page, label_of(one), one.counts);
  }
  page.family(metric::kShadowInFlight);
  for (const admission::ShadowRow& one : shadows) page.sample(label_of(one), one.under_way);
}

void add_canaries(Exposition& page, const std::vector<admission::CanaryRow>& canaries) {
  const auto add = [&](const base::Metric& metric, auto count) {
    page.family(metric);
    for (const admission::CanaryRow& one : canaries) {
      const std::string canary = label("canary", one.name) + ",";
      page.sample(canary + label("arm", "stable"), one.stable.*count);
      page.sample(canary + label("arm", "candidate"), one.candidate.*count);
    }
  };
  add(metric::kCanarySessions, &admission::CanaryCounts::sessions);
  add(metric::kCanaryBadSessions, &admission::CanaryCounts::bad_sessions);
}

void add_programs(Exposition& page, const std::vector<admission::ProgramRow>& programs) {
  page.family(metric::kProgramAsks);
  for (const admission::ProgramRow& one : programs) {
    add_outcomes<admission::ProgramOutcome>(page, label("deployment", one.deployment), one.counts);
  }
  page.family(metric::kProgramMovedTokens);
  for (const admission::ProgramRow& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_tokens);
  }
  page.family(metric::kProgramMovedBytes);
  for (const admission::ProgramRow& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_bytes);
  }
}

void add_explain(Exposition& page, const observe::RecordTotals& totals) {
  page.family(metric::kExplainRecords);
  for (size_t i = 0; i < totals.records.size(); ++i) {
    page.sample(label("kind", name(static_cast<observe::RecordKind>(i))), totals.records[i]);
  }
  page.family(metric::kExplainBytes);
  page.sample({}, totals.bytes);
  page.family(metric::kExplainDropped);
  for (size_t i = 0; i < totals.dropped.size(); ++i) {
    page.sample(label("reason", name(static_cast<observe::RecordDrop>(i))), totals.dropped[i]);
  }
}

}  // namespace penstock::http
