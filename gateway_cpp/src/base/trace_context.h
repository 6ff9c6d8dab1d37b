// The W3C trace context of a request: https://www.w3.org/TR/trace-context/#traceparent-header.
// What a client sends here travels on into messages that must be text, so nothing passes that the
// grammar does not know.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string_view>

namespace penstock::base {

// Where a request is in its trace.
struct TraceContext {
  std::uint64_t id_high = 0;  // of the trace, 16 bytes
  std::uint64_t id_low = 0;
  std::uint64_t parent = 0;  // its caller's span; 0: the trace begins here
  std::uint64_t span = 0;    // its own
  bool sampled = false;      // chosen when it began, and all that it calls are told so

  // The span of its attempt of that number, from 1. It follows from its own: nobody has to keep it.
  std::uint64_t span_of_attempt(std::uint64_t number) const { return derived(2 * number - 1); }
  // The span of what the engine did for that attempt.
  std::uint64_t span_of_engine(std::uint64_t number) const { return derived(2 * number); }

 private:
  std::uint64_t derived(std::uint64_t number) const;
};

// Whether `text` is a traceparent: version, trace id, parent id and flags in lower-case hex. What a
// later version appends is taken too, as printable ASCII.
bool is_trace_parent(std::string_view text);

// A traceparent, and the digits by which all that belongs to its trace is found. A value.
class TraceParent {
 public:
  // Of who belongs to that span of the context's trace.
  TraceParent(const TraceContext& context, std::uint64_t span);

  std::string_view text() const { return {text_.data(), text_.size()}; }
  std::string_view trace_id() const { return text().substr(3, 32); }

 private:
  std::array<char, 55> text_;
};

// One for each thread: where a client's trace cannot be followed, a new one begins.
class TraceContexts {
 public:
  TraceContexts() : random_(std::random_device{}()) {}

  // In the client's trace, sampled as its traceparent says, if `text` is one; else in a new one,
  // not sampled.
  TraceContext accept(std::string_view text);

 private:
  std::uint64_t fresh_id();

  std::mt19937_64 random_;
};

}  // namespace penstock::base
