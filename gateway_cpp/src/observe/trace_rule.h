// Which requests become traces. Pure decisions; values.
#pragma once

#include <chrono>

#include "base/trace_context.h"
#include "observe/record_sink.h"

namespace penstock::observe {

struct TraceRule {
  bool collects = false;              // there is a collector that spans are sent to
  double sample = 0;                  // the share of those that bring no trace of their own: 0 to 1
  std::chrono::milliseconds slow{0};  // one that takes so long is always traced; 0: none is
};

// Whether a request is chosen when it begins: as its caller's trace is, else by its share. So what
// it calls is told, and adds its own spans.
bool is_sampled(const TraceRule& rule, const base::TraceContext& trace);

// Whether a request that has ended is to be sent: one that was chosen, that failed through no fault
// of its client's, or that was slow.
bool is_traced(const TraceRule& rule, const RecordFacts& facts);

}  // namespace penstock::observe
