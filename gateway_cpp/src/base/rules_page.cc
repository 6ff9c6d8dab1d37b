#include "base/rules_page.h"

namespace penstock::base {

void add_shadows(Exposition& page, const std::vector<ShadowFacts>& shadows) {
  const auto label_of = [](const ShadowFacts& one) {
    return label("rule", one.rule) + "," + label("uid", one.uid);
  };
  page.family(metric::kShadowRequests);
  for (const ShadowFacts& one : shadows) {
    for (const auto& [outcome, count] : one.outcomes) {
      page.sample(label_of(one) + "," + label("outcome", outcome), count);
    }
  }
  page.family(metric::kShadowInFlight);
  for (const ShadowFacts& one : shadows) page.sample(label_of(one), one.under_way);
}

void add_canaries(Exposition& page, const std::vector<CanaryFacts>& canaries) {
  const auto add = [&](const Metric& metric, auto count) {
    page.family(metric);
    for (const CanaryFacts& one : canaries) {
      for (const CanaryFacts::Arm& arm : one.arms) {
        page.sample(label("canary", one.canary) + "," + label("arm", arm.name), arm.*count);
      }
    }
  };
  add(metric::kCanarySessions, &CanaryFacts::Arm::sessions);
  add(metric::kCanaryBadSessions, &CanaryFacts::Arm::bad_sessions);
}

void add_programs(Exposition& page, const std::vector<ProgramFacts>& programs) {
  page.family(metric::kProgramAsks);
  for (const ProgramFacts& one : programs) {
    for (const auto& [outcome, count] : one.outcomes) {
      page.sample(label("deployment", one.deployment) + "," + label("outcome", outcome), count);
    }
  }
  page.family(metric::kProgramMovedTokens);
  for (const ProgramFacts& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_tokens);
  }
  page.family(metric::kProgramMovedBytes);
  for (const ProgramFacts& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_bytes);
  }
}

}  // namespace penstock::base
