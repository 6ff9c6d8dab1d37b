// What a load has seen so far. One per run, written by the client's only thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "histogram.h"

namespace penstock::evals {

struct Counts {
  uint64_t events = 0;           // data events, without [DONE] and errors
  uint64_t answers = 0;          // whole answers: 200, and for streams the [DONE]
  uint64_t failed_requests = 0;  // refused connections, statuses other than 200, no HTTP
  uint64_t stream_errors = 0;    // answers with an error object in the stream
  uint64_t truncated = 0;        // answers that began and ended without their end

  uint64_t failures() const { return failed_requests + stream_errors + truncated; }
};

struct Tally {
  Counts counts;
  uint64_t started = 0;  // connections that have seen their first event or answer
  Histogram first_event_ns;
  Histogram gap_ns;  // between the reads of one stream that brought events
  Histogram answer_ns;
  std::string first_problem;

  void note_problem(std::string what) {
    if (first_problem.empty()) first_problem = std::move(what);
  }
};

}  // namespace penstock::evals
