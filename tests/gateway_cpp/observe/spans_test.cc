#include "observe/spans.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "observe/attributes.h"

namespace penstock::observe {
namespace {

using otlp::Span;

constexpr std::uint64_t kReceived = 1'767'225'600'000'000;  // microseconds since 1970
constexpr base::TraceContext kTrace{.id_high = 0x0af7651916cd43dd,
                                    .id_low = 0x8448eb211c80319c,
                                    .parent = 0xb7ad6b7169203331,
                                    .span = 0x1122334455667788,
                                    .sampled = true};

std::uint64_t at(std::uint64_t us) { return (kReceived + us) * 1000; }

std::string hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string text_of(const otlp::AnyValue& value) {
  switch (value.value_case()) {
    case otlp::AnyValue::kStringValue:
      return value.string_value();
    case otlp::AnyValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case otlp::AnyValue::kIntValue:
      return std::to_string(value.int_value());
    case otlp::AnyValue::kDoubleValue:
      return std::to_string(value.double_value());
    default: {
      std::string all;
      for (const auto& one : value.array_value().values()) all += "[" + one.string_value() + "]";
      return all;
    }
  }
}

std::map<std::string, std::string> told(const Attributes::List& attributes) {
  std::map<std::string, std::string> all;
  for (const auto& one : attributes) {
    EXPECT_TRUE(all.emplace(one.key(), text_of(one.value())).second) << one.key() << " twice";
  }
  return all;
}

// One that a replica answered in a stream.
v1::RequestRecord streamed() {
  v1::RequestRecord record;
  record.set_request_id("req_1");
  record.set_received_us(kReceived);
  record.set_path("/v1/chat/completions");
  record.set_tenant("acme");
  record.set_model("alias");
  record.set_prompt_version("v7");
  record.set_status(200);
  record.set_outcome("succeeded");
  record.set_duration_us(900'000);
  record.set_first_byte_us(250'000);
  record.set_events(12);
  record.set_streamed(true);
  record.set_prompt_tokens(100);
  record.set_completion_tokens(10);
  record.set_cached_tokens(64);
  record.set_cost_nanousd(2'500'000);
  for (const unsigned us : {10, 20, 30}) record.add_phase_us(us);
  v1::Stay& stay = *record.add_stays();
  stay.set_deployment("mini");
  stay.set_by("alias");
  stay.mutable_turn()->set_estimated_wait_ms(40);
  stay.mutable_turn()->set_priority("normal");
  v1::Attempt& attempt = *record.add_attempts();
  attempt.set_replica("r1");
  attempt.set_reason("first");
  attempt.set_sent_us(1'000);
  attempt.set_first_us(240'000);
  attempt.set_ended_us(880'000);
  attempt.set_queued_us(30'000);
  attempt.set_prefill_us(170'000);
  attempt.set_decode_us(600'000);
  attempt.mutable_pick()->set_policy("power_of_two");
  v1::Look& look = *attempt.mutable_pick()->add_looks();
  look.set_replica("r1");
  look.set_load(3);
  look.set_verdict("taken");
  record.set_attempts_made(1);
  return record;
}

struct Made {
  explicit Made(const v1::RequestRecord& record, const base::TraceContext& trace = kTrace,
                std::string_view operation = "chat") {
    add_spans(record, {trace, operation}, spans);
  }
  const Span& operator[](int i) const { return spans.spans(i); }
  int size() const { return spans.spans_size(); }
  std::vector<std::string> events(int i) const {
    std::vector<std::string> names;
    for (const auto& event : spans.spans(i).events()) names.push_back(event.name());
    return names;
  }

  otlp::ScopeSpans spans;
};

TEST(Spans, AreOneForTheRequestOneForItsAttemptAndOneForWhatTheEngineDid) {
  const Made made(streamed());
  ASSERT_EQ(made.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(hex(made[i].trace_id()), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(made[i].flags() & 0xffU, 1U);
  }
  EXPECT_EQ(made[0].name(), "chat mini");
  EXPECT_EQ(made[0].kind(), Span::SPAN_KIND_SERVER);
  EXPECT_EQ(hex(made[0].span_id()), "1122334455667788");
  EXPECT_EQ(hex(made[0].parent_span_id()), "b7ad6b7169203331");
  EXPECT_EQ(made[0].flags(), 0x301U) << "its parent is of another process";
  EXPECT_EQ(made[1].name(), "attempt");
  EXPECT_EQ(made[1].kind(), Span::SPAN_KIND_CLIENT);
  EXPECT_EQ(made[1].parent_span_id(), made[0].span_id());
  EXPECT_EQ(made[1].flags(), 0x101U);
  EXPECT_EQ(made[2].name(), "engine");
  EXPECT_EQ(made[2].parent_span_id(), made[1].span_id());
}

TEST(Spans, OfAnAttemptAreThoseThatItsReplicaWasTold) {
  const Made made(streamed());
  const base::TraceParent sent(kTrace, kTrace.span_of_attempt(1));
  EXPECT_EQ(hex(made[1].span_id()), sent.text().substr(36, 16));
}

TEST(Spans, HaveTheTimesOfTheRecordAndTheEnginesBeforeItsFirstEvent) {
  const Made made(streamed());
  EXPECT_EQ(made[0].start_time_unix_nano(), at(0));
  EXPECT_EQ(made[0].end_time_unix_nano(), at(900'000));
  EXPECT_EQ(made[1].start_time_unix_nano(), at(1'000));
  EXPECT_EQ(made[1].end_time_unix_nano(), at(880'000));
  EXPECT_EQ(made[2].start_time_unix_nano(), at(40'000));
  EXPECT_EQ(made[2].end_time_unix_nano(), at(840'000));
}

TEST(Spans, OfAnEngineEndWithAnAnswerThatIsNoStream) {
  v1::RequestRecord record = streamed();
  record.set_streamed(false);
  record.mutable_attempts(0)->set_first_us(870'000);
  const Made made(record);
  EXPECT_EQ(made[2].start_time_unix_nano(), at(70'000));
  EXPECT_EQ(made[2].end_time_unix_nano(), at(870'000));
}

TEST(Spans, SayWhatTheConventionsHaveNamesFor) {
  const Made made(streamed());
  auto all = told(made[0].attributes());
  EXPECT_EQ(all["gen_ai.operation.name"], "chat");
  EXPECT_EQ(all["gen_ai.provider.name"], "penstock");
  EXPECT_EQ(all["gen_ai.request.model"], "alias");
  EXPECT_EQ(all["gen_ai.response.model"], "mini");
  EXPECT_EQ(all["gen_ai.prompt.version"], "v7");
  EXPECT_EQ(all["gen_ai.request.stream"], "true");
  EXPECT_EQ(all["gen_ai.usage.input_tokens"], "100");
  EXPECT_EQ(all["gen_ai.usage.output_tokens"], "10");
  EXPECT_EQ(all["gen_ai.usage.cache_read.input_tokens"], "64");
  EXPECT_EQ(all["gen_ai.response.time_to_first_chunk"], "0.250000");
  EXPECT_EQ(all["http.response.status_code"], "200");
  EXPECT_EQ(all["penstock.tenant"], "acme");
  EXPECT_EQ(all["penstock.queue.estimated_wait"], "0.040000");
  EXPECT_EQ(all["penstock.cost_usd"], "0.002500");
  EXPECT_EQ(all["penstock.phase.admit"], "0.000030");
  EXPECT_EQ(all.count("error.type"), 0U);
  all = told(made[1].attributes());
  EXPECT_EQ(all["penstock.replica"], "r1");
  EXPECT_EQ(all["penstock.pick.looks"], "[r1 3 taken]");
  all = told(made[2].attributes());
  EXPECT_EQ(all["gen_ai.latency.time_in_queue"], "0.030000");
  EXPECT_EQ(all["gen_ai.latency.time_in_model_prefill"], "0.170000");
  EXPECT_EQ(all["gen_ai.latency.time_in_model_decode"], "0.600000");
}

TEST(Spans, HaveNoNameThatAClientMakesUp) {
  v1::RequestRecord record;
  record.set_path("/v1/embeddings");
  record.set_model("nobody-has-this-one");
  record.set_status(404);
  record.set_outcome("invalid");
  record.set_error_code("model_not_found");
  const Made made(record, kTrace, "embeddings");
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made[0].name(), "embeddings");
  EXPECT_EQ(told(made[0].attributes())["error.type"], "model_not_found");
  EXPECT_EQ(made[0].status().code(), otlp::Status::STATUS_CODE_UNSET) << "its client's fault";
}

TEST(Spans, BeginATraceWhereTheClientHadNone) {
  base::TraceContext own = kTrace;
  own.parent = 0;
  own.sampled = false;
  const Made made(streamed(), own);
  EXPECT_EQ(made[0].parent_span_id(), "");
  EXPECT_EQ(made[0].flags(), 0x100U);
}

TEST(Spans, SayWhatFailedAndWhatWasToldOfIt) {
  v1::RequestRecord record = streamed();
  record.set_outcome("failed");
  record.set_error_code("engine_dead");
  record.set_message("The engine died.");
  record.mutable_attempts(0)->set_error("engine_killed");
  const Made made(record);
  EXPECT_EQ(made[0].status().code(), otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(made[0].status().message(), "The engine died.");
  EXPECT_EQ(made[1].status().code(), otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(told(made[1].attributes())["error.type"], "engine_killed");
}

TEST(Spans, OfAttemptsKeepTheirNumbersWhereTheRecordHasTheLastOnes) {
  v1::RequestRecord record = streamed();
  *record.add_attempts() = record.attempts(0);
  record.set_attempts_made(5);
  const Made made(record);
  ASSERT_EQ(made.size(), 5);
  EXPECT_EQ(told(made[1].attributes())["penstock.attempt.number"], "4");
  EXPECT_EQ(told(made[3].attributes())["penstock.attempt.number"], "5");
  EXPECT_NE(made[1].span_id(), made[3].span_id());
}

TEST(Spans, OfAnEngineLieWithinTheirAttemptWhateverItsReplicaSays) {
  v1::RequestRecord record = streamed();
  v1::Attempt& attempt = *record.mutable_attempts(0);
  attempt.set_queued_us(4'000'000'000);
  attempt.set_prefill_us(4'000'000'000);
  attempt.set_decode_us(4'000'000'000);
  const Made made(record);
  EXPECT_EQ(made[2].start_time_unix_nano(), made[1].start_time_unix_nano());
  EXPECT_EQ(made[2].end_time_unix_nano(), made[1].end_time_unix_nano());
}

TEST(Spans, HaveNoneForAnEngineThatToldNoTimes) {
  v1::RequestRecord record = streamed();
  v1::Attempt& attempt = *record.mutable_attempts(0);
  attempt.clear_queued_us();
  attempt.clear_prefill_us();
  attempt.clear_decode_us();
  EXPECT_EQ(Made(record).size(), 2);
}

TEST(Spans, TellInTheirOrderWhatChangedTheAnswer) {
  v1::RequestRecord record = streamed();
  record.set_degraded("engine_error");
  record.set_rung("fallback:next");
  record.mutable_stays(0)->set_left_for("engine_error");
  record.mutable_stays(0)->mutable_turn()->set_place(3);
  v1::Stay& passed = *record.add_stays();
  passed.set_deployment("full");
  passed.set_way(v1::Stay::WAY_RUNG);
  passed.set_entered_us(400'000);
  passed.set_passed_over(true);
  passed.set_left_for("queue_full");
  v1::Stay& next = *record.add_stays();
  next.set_deployment("next");
  next.set_way(v1::Stay::WAY_RUNG);
  next.set_entered_us(410'000);
  record.set_first_byte_us(450'000);
  v1::Attempt& again = *record.add_attempts();
  again.set_reason("resume:kill");
  again.set_replica("r2");
  again.set_sent_us(600'000);
  v1::Gap& gap = *record.add_gaps();
  gap.set_at_us(500'000);
  gap.set_ms(1'500);
  const Made made(record);
  EXPECT_EQ(made[0].name(), "chat next");
  EXPECT_EQ(made.events(0),
            (std::vector<std::string>{"queued", "left", "passed_over", "moved", "degraded",
                                      "first_token", "gap", "resumed"}));
  const Span::Event& degraded = made[0].events(4);
  EXPECT_EQ(degraded.time_unix_nano(), at(410'000));
  EXPECT_EQ(told(degraded.attributes())["penstock.rung"], "fallback:next");
  EXPECT_EQ(told(made[0].events(7).attributes())["penstock.reason"], "kill");
}

}  // namespace
}  // namespace penstock::observe
