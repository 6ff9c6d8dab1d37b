#include "base/rules_page.h"

#include <string_view>

namespace penstock::base {

void add_shadows(Exposition& page, const std::vector<ShadowFacts>& shadows) {
  const auto label_of = [](const ShadowFacts& one) {
    return label("rule", one.rule) + "," + label("uid", one.uid);
  };
  page.family("shadow_requests_total", "counter",
              "Shadows of sampled requests, by rule and by what became of them.");
  for (const ShadowFacts& one : shadows) {
    for (const auto& [outcome, count] : one.outcomes) {
      page.sample(label_of(one) + "," + label("outcome", outcome), count);
    }
  }
  page.family("shadow_in_flight", "gauge", "Shadows that wait for a place or have one.");
  for (const ShadowFacts& one : shadows) page.sample(label_of(one), one.under_way);
}

void add_canaries(Exposition& page, const std::vector<CanaryFacts>& canaries) {
  const auto add = [&](std::string_view name, const char* says, auto count) {
    page.family(name, "counter", says);
    for (const CanaryFacts& one : canaries) {
      for (const CanaryFacts::Arm& arm : one.arms) {
        page.sample(label("canary", one.canary) + "," + label("arm", arm.name), arm.*count);
      }
    }
  };
  add("canary_sessions_total", "Sessions of canaries' arms, at the step that is judged.",
      &CanaryFacts::Arm::sessions);
  add("canary_bad_sessions_total", "Of canaries' sessions, those with a request that broke.",
      &CanaryFacts::Arm::bad_sessions);
}

void add_programs(Exposition& page, const std::vector<ProgramFacts>& programs) {
  page.family("program_asks_total", "counter",
              "Requests that a router program was asked about, by what came of it.");
  for (const ProgramFacts& one : programs) {
    for (const auto& [outcome, count] : one.outcomes) {
      page.sample(label("deployment", one.deployment) + "," + label("outcome", outcome), count);
    }
  }
  page.family("program_moved_tokens_total", "counter",
              "Tokens whose KV router programs have moved between engines.");
  for (const ProgramFacts& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_tokens);
  }
  page.family("program_moved_bytes_total", "counter", "Bytes of that KV.");
  for (const ProgramFacts& one : programs) {
    page.sample(label("deployment", one.deployment), one.moved_bytes);
  }
}

void add_explain(Exposition& page, const ExplainFacts& explain) {
  page.family("explain_records", "gauge",
              "Requests whose decisions are kept, by what they are kept for.");
  for (const auto& [kind, count] : explain.kept) page.sample(label("kind", kind), count);
  page.family("explain_bytes", "gauge", "Bytes of what is kept of them.");
  page.sample({}, explain.bytes);
  page.family("explain_dropped_total", "counter",
              "Of these, those that were given up within an hour, by what was full.");
  for (const auto& [reason, count] : explain.dropped) page.sample(label("reason", reason), count);
}

}  // namespace penstock::base
