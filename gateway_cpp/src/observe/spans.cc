#include "observe/spans.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/attributes.h"
#include "observe/span_events.h"

namespace penstock::observe {
namespace {

using otlp::Span;

constexpr std::uint32_t kSampled = 0x1;
constexpr std::uint32_t kKnowsWhose = 0x100;  // whether the parent is of another process
constexpr std::uint32_t kOfOthers = 0x200;
constexpr unsigned kServerError = 500;

constexpr std::array<std::string_view, 7> kPhases = {"parse", "resolve", "admit", "select",
                                                     "open",  "stream",  "settle"};

std::string bytes_of(std::uint64_t number) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(number >> (56U - 8U * i));
  }
  return bytes;
}

// Of one trace.
class Tree {
 public:
  Tree(const base::TraceContext& trace, std::uint64_t received_us, otlp::ScopeSpans& out)
      : trace_(trace), times_{received_us}, out_(out) {}

  // `from` and `to`: microseconds since the request had been read.
  Span& add(std::string name, std::uint64_t id, std::uint64_t parent, std::uint64_t from,
            std::uint64_t to) {
    Span& span = *out_.add_spans();
    span.set_trace_id(bytes_of(trace_.id_high) + bytes_of(trace_.id_low));
    span.set_span_id(bytes_of(id));
    if (parent != 0) span.set_parent_span_id(bytes_of(parent));
    span.set_name(std::move(name));
    span.set_flags(kKnowsWhose | (id == trace_.span && parent != 0 ? kOfOthers : 0) |
                   (trace_.sampled ? kSampled : 0));
    span.set_start_time_unix_nano(times_.at(from));
    span.set_end_time_unix_nano(times_.at(std::max(from, to)));
    return span;
  }
  const base::TraceContext& trace() const { return trace_; }
  const Times& times() const { return times_; }

 private:
  const base::TraceContext& trace_;
  const Times times_;
  otlp::ScopeSpans& out_;
};

const v1::Stay* last_stay(const v1::RequestRecord& record) {
  for (int i = record.stays_size(); i > 0; --i) {
    if (!record.stays(i - 1).passed_over()) return &record.stays(i - 1);
  }
  return nullptr;
}

void set_failed(Span& span, std::string_view message) {
  span.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
  span.mutable_status()->set_message(std::string(message));
}

void describe_call(const v1::RequestRecord& record, std::string_view operation, Attributes& out) {
  out.text("gen_ai.operation.name", operation);
  out.text("gen_ai.provider.name", "penstock");
  out.text("gen_ai.request.model", record.model());
  out.text("gen_ai.prompt.version", record.prompt_version());
  out.flag("gen_ai.request.stream", record.streamed());
  out.number("gen_ai.usage.input_tokens", record.prompt_tokens());
  out.number("gen_ai.usage.output_tokens", record.completion_tokens());
  out.number("gen_ai.usage.cache_read.input_tokens", record.cached_tokens());
  if (record.streamed() && record.first_byte_us() > 0) {
    out.seconds("gen_ai.response.time_to_first_chunk", record.first_byte_us());
  }
  out.text("http.request.method", "POST");
  out.text("url.path", record.path());
  out.number("http.response.status_code", record.status());
  out.text("error.type", record.drop_reason().empty() ? record.error_code() : record.drop_reason());
}

void describe_stay(const v1::Stay& stay, Attributes& out) {
  out.text("gen_ai.response.model", stay.deployment());
  out.text("penstock.deployment", stay.deployment());
  out.text("penstock.resolved_by", stay.by());
  out.text("penstock.adapter", stay.adapter());
  out.number("penstock.estimate.input_tokens", stay.prompt_estimate());
  out.number("penstock.estimate.output_tokens", stay.completion_estimate());
  if (!stay.has_turn()) return;
  const v1::QueueTurn& turn = stay.turn();
  constexpr std::uint64_t kMilli = 1000;
  out.seconds("penstock.queue.estimated_wait", turn.estimated_wait_ms() * kMilli);
  out.seconds("penstock.queue.wait", turn.waited_us());
  out.number("penstock.queue.place", turn.place());
  out.text("penstock.queue.priority", turn.priority());
}

void describe_decisions(const v1::RequestRecord& record, Attributes& out) {
  constexpr double kNano = 1e-9;
  out.text("penstock.request_id", record.request_id());
  out.text("penstock.client_request_id", record.client_request_id());
  out.text("penstock.tenant", record.tenant());
  out.text("penstock.key_id", record.key_id());
  out.text("penstock.outcome", record.outcome());
  out.text("penstock.drop_reason", record.drop_reason());
  out.text("penstock.degraded", record.degraded());
  out.text("penstock.rung", record.rung());
  out.text("penstock.canary", record.canary());
  if (!record.canary().empty()) {
    out.text("penstock.canary.arm", record.of_candidate() ? "candidate" : "stable");
  }
  out.text("penstock.program", record.program());
  out.texts("penstock.shadows", record.shadows());
  out.flag("penstock.suspect", record.suspect());
  out.flag("penstock.quarantined", record.quarantined());
  out.text("penstock.model_version", record.model_version());
  out.number("penstock.attempts", record.attempts_made());
  out.number("penstock.events", record.events());
  out.number("penstock.bytes", record.bytes());
  out.fraction("penstock.cost_usd", static_cast<double>(record.cost_nanousd()) * kNano);
  const auto phases =
      std::min<std::size_t>(kPhases.size(), static_cast<std::size_t>(record.phase_us_size()));
  for (std::size_t i = 0; i < phases; ++i) {
    out.seconds("penstock.phase." + std::string(kPhases[i]), record.phase_us(static_cast<int>(i)));
  }
}

void add_request(const v1::RequestRecord& record, std::string_view operation, Tree& tree) {
  const v1::Stay* const stay = last_stay(record);
  std::string name(operation);
  if (stay != nullptr)
    name.append(" ").append(stay->deployment());  // not what a client may make up
  Span& span =
      tree.add(std::move(name), tree.trace().span, tree.trace().parent, 0, record.duration_us());
  span.set_kind(Span::SPAN_KIND_SERVER);
  Attributes attributes(span.mutable_attributes());
  describe_call(record, operation, attributes);
  if (stay != nullptr) describe_stay(*stay, attributes);
  describe_decisions(record, attributes);
  add_events(record, tree.times(), span);
  if (record.outcome() == "failed" || record.status() >= kServerError) {
    set_failed(span, record.message());
  }
}

std::vector<std::string> looks_of(const v1::Pick& pick) {
  std::vector<std::string> looks;
  for (const v1::Look& look : pick.looks()) {
    looks.push_back(look.replica() + " " + std::to_string(look.load()) + " " + look.verdict());
  }
  return looks;
}

// What the engine did lies before its first event by what it took until then; of an answer that is
// no stream, that event is its end.
void add_engine(const v1::Attempt& attempt, std::uint64_t number, bool streamed, Tree& tree) {
  const std::uint64_t before = std::uint64_t{attempt.queued_us()} + attempt.prefill_us();
  if (before + attempt.decode_us() == 0) return;
  const std::uint64_t first = std::max(attempt.first_us(), attempt.sent_us());
  const std::uint64_t behind = streamed ? attempt.decode_us() : 0;
  const std::uint64_t ahead = before + attempt.decode_us() - behind;
  const std::uint64_t from = std::max(first - std::min(first, ahead), attempt.sent_us());
  const std::uint64_t to = std::min(first + behind, attempt.ended_us());
  Span& span = tree.add("engine", tree.trace().span_of_engine(number),
                        tree.trace().span_of_attempt(number), from, to);
  span.set_kind(Span::SPAN_KIND_INTERNAL);
  Attributes attributes(span.mutable_attributes());
  attributes.text("penstock.replica", attempt.replica());
  attributes.seconds("gen_ai.latency.time_in_queue", attempt.queued_us());
  attributes.seconds("gen_ai.latency.time_in_model_prefill", attempt.prefill_us());
  attributes.seconds("gen_ai.latency.time_in_model_decode", attempt.decode_us());
}

void add_attempt(const v1::Attempt& attempt, std::uint64_t number, bool streamed, Tree& tree) {
  Span& span = tree.add("attempt", tree.trace().span_of_attempt(number), tree.trace().span,
                        attempt.sent_us(), attempt.ended_us());
  span.set_kind(Span::SPAN_KIND_CLIENT);
  Attributes attributes(span.mutable_attributes());
  attributes.number("penstock.attempt.number", number);
  attributes.text("penstock.attempt.reason", attempt.reason());
  attributes.text("penstock.replica", attempt.replica());
  attributes.text("penstock.pick.policy", attempt.pick().policy());
  attributes.texts("penstock.pick.looks", looks_of(attempt.pick()));
  attributes.number("penstock.pick.more", attempt.pick().more());
  attributes.number("gen_ai.usage.cache_read.input_tokens", attempt.cached_tokens());
  attributes.text("error.type", attempt.error());
  if (attempt.first_us() > 0) add_event("first_event", tree.times().at(attempt.first_us()), span);
  if (!attempt.error().empty()) set_failed(span, attempt.error());
  add_engine(attempt, number, streamed, tree);
}

}  // namespace

void add_spans(const v1::RequestRecord& record, const SpanFacts& facts, otlp::ScopeSpans& out) {
  Tree tree(facts.trace, record.received_us(), out);
  add_request(record, facts.operation, tree);
  const auto kept = static_cast<std::uint64_t>(record.attempts_size());
  std::uint64_t number = std::max<std::uint64_t>(record.attempts_made(), kept) - kept;
  for (const v1::Attempt& attempt : record.attempts()) {
    add_attempt(attempt, ++number, record.streamed(), tree);
  }
}

}  // namespace penstock::observe
