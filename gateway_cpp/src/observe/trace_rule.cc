#include "observe/trace_rule.h"

#include <cmath>

namespace penstock::observe {

bool is_sampled(const TraceRule& rule, const base::TraceContext& trace) {
  if (!rule.collects) return false;
  if (trace.parent != 0) return trace.sampled;
  // A trace's last eight bytes are random: all who go by them choose the same traces.
  return static_cast<double>(trace.id_low) < std::ldexp(rule.sample, 64);
}

bool is_traced(const TraceRule& rule, const RecordFacts& facts) {
  if (!rule.collects) return false;
  if (facts.trace.sampled || facts.outcome == base::Outcome::kFailed) return true;
  const std::chrono::microseconds took(facts.duration_us);
  return rule.slow.count() > 0 && took >= rule.slow;
}

}  // namespace penstock::observe
