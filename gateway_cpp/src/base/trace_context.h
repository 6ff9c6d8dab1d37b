// The W3C trace context of a request: https://www.w3.org/TR/trace-context/#traceparent-header.
// What a client sends here travels on into messages that must be text, so nothing passes that the
// grammar does not know.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace penstock::base {

// Whether `text` is a traceparent: version, trace id, parent id and flags in lower-case hex. What a
// later version appends is taken too, as printable ASCII.
bool is_trace_parent(std::string_view text);

// The digits by which all that belongs to the trace is found. `parent`: from accept().
std::string_view trace_id_of(std::string_view parent);
// Those of the span that it was called from. `parent`: a traceparent, or empty.
std::string_view parent_id_of(std::string_view parent);
// Whether whoever called keeps the trace. Likewise.
bool is_sampled(std::string_view parent);

// One for each thread: where a client's trace cannot be followed, a new one begins.
class TraceParents {
 public:
  TraceParents() : random_(std::random_device{}()) {}

  // `text` if it is a traceparent, a new one otherwise.
  std::string accept(std::string_view text);

 private:
  std::string fresh();

  std::mt19937_64 random_;
};

}  // namespace penstock::base
