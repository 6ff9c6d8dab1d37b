#include "proxy/record_log.h"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <string>
#include <string_view>

namespace penstock::proxy {

namespace {

using base::PlainText;

// When a line has a field.
struct When {
  bool holds = true;
  std::string_view text;  // for the page
};

// What a field is, and from which part of v1::RequestRecord.
struct About {
  std::string_view name;
  std::string_view from;
  std::string_view meaning;
};

// Those that each line has.
template <class Table>
void each_usual(const RequestRecord& record, Table& table) {
  const auto phase = [&record](base::Phase which) {
    return record.phases.spent[static_cast<size_t>(which)];
  };
  const When always{.holds = true, .text = "always"};
  const auto put = [&](const About& about, const auto& value) __attribute__((always_inline)) {
    table.put(always, about, value);
  };
  put({"request_id", "request_id", "our name of it"}, PlainText{record.request_id});
  put({"client_request_id", "client_request_id", "the caller's own"}, record.client_request_id);
  put({"trace_id", "trace_id", "of the trace that it belongs to"}, PlainText{record.trace_id});
  put({"path", "path", "of the endpoint"}, PlainText{record.path});
  put({"tenant", "tenant", "whose it was; empty: it came without a key"}, record.tenant);
  put({"key_id", "key_id", "the key that it came with"}, record.key_id);
  put({"client", "client",
       "the address at the other end of the connection, a proxy's where one "
       "is between; empty with `--no-client-addresses`"},
      record.client);
  put({"deployment", "stays.deployment", "where it ended; empty: its name was resolved to none"},
      record.deployment());
  put({"adapter", "stays.adapter", "`name@version`; empty: the base model"}, record.adapter());
  put({"model_version", "model_version", "of the weights, as the replica told it"},
      record.model_version);
  put({"replica", "attempts.replica", "the last one that it was sent to there"}, record.replica);
  put({"status", "status", "what the client saw; 499: it left before"}, record.status);
  put({"outcome", "outcome", "`succeeded`, `failed`, `rejected`, `cancelled`, `invalid`"},
      PlainText{base::name(record.outcome)});
  put({"error_code", "error_code", "as the client was told it"}, record.error_code);
  put({"drop_reason", "drop_reason",
       "why admission said no, in the word of "
       "`x-penstock-drop-reason`"},
      record.drop_reason);
  put({"attempts", "attempts_made", "calls to replicas"}, record.attempts_made);
  put({"queue_wait_ms", "stays.turn.waited_us", "for places, before each attempt"},
      record.queue_wait);
  put({"estimated_wait_ms", "stays.turn.estimated_wait_ms", "as admission estimated it there"},
      record.estimated_wait().count());
  put({"ttft_ms", "first_byte_us", "until the first answer byte was handed over"},
      record.ttft.value_or(std::chrono::nanoseconds(0)));
  put({"duration_ms", "duration_us", "from its last byte read to its end"}, record.duration);
  put({"events", "events", "SSE events handed to the client; 1: a whole answer"}, record.events);
  put({"bytes", "bytes", "answer bytes handed to the client"}, record.bytes);
  put({"prompt_tokens", "prompt_tokens",
       "as far as they were known when the line was written: "
       "of a unary request whose client left, none"},
      record.prompt_tokens);
  put({"completion_tokens", "completion_tokens", "likewise"}, record.completion_tokens);
  put({"cached_tokens", "cached_tokens", "of the prompt's, those that were not computed"},
      record.cached_tokens);
  put({"parse_ms", "phase_us", "in that phase, whenever it was in it"}, phase(base::Phase::kParse));
  put({"resolve_ms", "phase_us", "likewise"}, phase(base::Phase::kResolve));
  put({"admit_ms", "phase_us", "likewise"}, phase(base::Phase::kAdmit));
  put({"select_ms", "phase_us", "likewise"}, phase(base::Phase::kSelect));
  put({"open_ms", "phase_us", "likewise"}, phase(base::Phase::kOpen));
  put({"stream_ms", "phase_us", "likewise"}, phase(base::Phase::kStream));
  put({"settle_ms", "phase_us", "likewise"}, phase(base::Phase::kSettle));
}

// Those that few lines have. A value that has to be made is a function.
template <class Table>
void each_rare(const RequestRecord& record, Table& table) {
  const bool has_moved = !record.degraded.empty() ||
                         std::ranges::any_of(record.stays.all(), [](const StayRecord& stay) {
                           return !stay.left_for.empty();
                         });
  const When moved{has_moved, "degraded, or not answered where it came to first"};
  table.put(moved, {"left", "stays.left_for", "who could not answer it, and why"},
            [&record] { return left_text(record); });
  table.put(moved, {"degraded", "degraded", "why the answer is not what was asked for"},
            record.degraded);
  table.put(moved, {"rung", "rung", "that it is owed to"}, record.rung);
  table.put(moved, {"asked", "asked", "the deployment that was asked for"}, record.asked);
  table.put(moved, {"trimmed", "trimmed_tokens", "what was left out of the prompt"},
            [&record] { return trimmed_text(record); });
  const When programmed{!record.program.empty(), "a router program was asked"};
  table.put(programmed, {"program", "program", "what came of it: `decided`, `slow`, ..."},
            record.program);
  table.put(programmed,
            {"legs", "legs",
             "what engines did for it: `prep_recv@r2=16/1ms`, of each the engine, "
             "tokens or failure, and time; the last eight"},
            [&record] { return legs_text(record); });
  const When canaried{!record.canary.empty(), "its deployment or alias has a canary"};
  table.put(canaried, {"canary", "canary", "the canary's name"}, record.canary);
  table.put(canaried, {"arm", "of_candidate", "`stable` or `candidate`, whoever answered"},
            std::string_view(record.of_candidate ? "candidate" : "stable"));
  const Resumption* resumption = record.resumption.get();
  const When resumed{resumption != nullptr && resumption->count > 0,
                     "its answer broke and was to go on"};
  table.put(resumed, {"resumes", "attempts.reason", "how often it did go on"},
            resumption != nullptr ? resumption->resumed : 0U);
  table.put(resumed, {"resumed_from", "attempts.replica", "where it broke, in their order"},
            [resumption] { return resumption->from; });
  table.put({!record.prompt_version.empty(), "it names one"},
            {"prompt_version", "prompt_version", "its `metadata.prompt_version`"},
            record.prompt_version);
}

// The line. Inlined, as what it puts is: names are known to the compiler then.
class Line {
 public:
  explicit Line(base::LogLine& line) : line_(line) {}

  template <class Value>
  [[gnu::always_inline]] void put(const When& when, const About& about, const Value& value) {
    if (!when.holds) return;
    if constexpr (std::invocable<Value>) {
      line_.put(about.name, value());
    } else {
      line_.put(about.name, value);
    }
  }

 private:
  base::LogLine& line_;
};

// The page.
class Page {
 public:
  template <class Value>
  void put(const When& when, const About& about, const Value& /*value*/) {
    text_.append("| `").append(about.name).append("` | ").append(when.text);
    text_.append(" | `").append(about.from).append("` | ").append(about.meaning).append(" |\n");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_ =
      "| field | stands where | in the record | says |\n| --- | --- | --- | --- |\n";
};

}  // namespace

void log_record(const RequestRecord& record, base::Log& log) {
  log.each(base::Level::kInfo, "request settled", [&record](base::LogLine& to) {
    Line line(to);
    each_usual(record, line);
    each_rare(record, line);
  });
}

std::string log_field_table() {
  Page page;
  const RequestRecord none{};
  each_usual(none, page);
  each_rare(none, page);
  return page.text();
}

}  // namespace penstock::proxy
