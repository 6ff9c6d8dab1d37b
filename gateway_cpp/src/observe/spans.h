// The spans of a request that has ended: its own, one for each attempt, and below that one for what
// the engine did, made from the times that its replica told. Names and attributes are those of
// OpenTelemetry's conventions for generative AI, and of vLLM where these have none; what only we
// know is `penstock.*`. Pure.
#pragma once

#include <string_view>

#include "base/trace_context.h"
#include "penstock/v1/explain.pb.h"
#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {

// What is known of a request beside its record.
struct SpanFacts {
  base::TraceContext trace;
  std::string_view operation;  // of its endpoint, static: `gen_ai.operation.name`
};

void add_spans(const v1::RequestRecord& record, const SpanFacts& facts, otlp::ScopeSpans& out);

}  // namespace penstock::observe
