// Who reads what a request's decisions were, once it has ended: what explains them, what traces
// them. Whoever settles requests knows of these readers this much.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/deployment_metrics.h"
#include "base/trace_context.h"

namespace penstock::observe {

// What is told beside a record's bytes: by these it is kept and traced, without a look into it.
// Views hold as long as the call.
struct RecordFacts {
  std::string_view tenant = {};  // empty: it came without a key
  base::Outcome outcome = base::Outcome::kCancelled;
  unsigned status = 499;            // what the client saw; 499: it left before
  std::uint64_t received_us = 0;    // microseconds since 1970
  std::uint64_t duration_us = 0;    // until it was settled
  std::uint64_t first_byte_us = 0;  // likewise, of the answer; 0: none was handed to the client
  std::string_view operation = {};  // of its endpoint, static
  base::TraceContext trace = {};
};

class RecordSink {
 public:
  RecordSink() = default;
  RecordSink(const RecordSink&) = delete;
  RecordSink& operator=(const RecordSink&) = delete;
  virtual ~RecordSink() = default;
  // `bytes`: a v1::RequestRecord, whose first fields are its ids. Called by the thread that has
  // served the request, once for each: it may not wait.
  virtual void take(const RecordFacts& facts, std::string_view bytes) = 0;
};

// Several who read it, one after the other.
class RecordSinks final : public RecordSink {
 public:
  // Before the first request; it outlives them.
  void add(RecordSink& sink) { sinks_.push_back(&sink); }
  bool empty() const { return sinks_.empty(); }
  void take(const RecordFacts& facts, std::string_view bytes) override {
    for (RecordSink* sink : sinks_) sink->take(facts, bytes);
  }

 private:
  std::vector<RecordSink*> sinks_;
};

}  // namespace penstock::observe
