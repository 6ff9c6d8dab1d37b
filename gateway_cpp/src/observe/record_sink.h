// Who takes the records of requests that have ended. Any thread; never waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/deployment_metrics.h"
#include "base/trace_context.h"

namespace penstock::observe {

// What is decided by, of a record whose bytes nobody needs to read for that.
struct RecordFacts {
  base::Outcome outcome = base::Outcome::kCancelled;
  unsigned status = 0;
  std::uint64_t received_us = 0;  // microseconds since 1970
  std::uint64_t duration_us = 0;
  base::TraceContext trace;
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // `bytes`: of a v1::RequestRecord.
  virtual void take(std::string_view tenant, const RecordFacts& facts, std::string bytes) = 0;
};

}  // namespace penstock::observe
