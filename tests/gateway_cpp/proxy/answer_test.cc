// How answers end, other than well.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class AnswerTest : public RequestFlowTest {};

TEST_F(AnswerTest, SendsNoHeartbeatWhereNoneIsWanted) {
  config_.heartbeat = milliseconds(0);
  ask(kStream);
  pass(seconds(30));
  EXPECT_EQ(reply_.status, 0U);
  call().chunk("data: a\n\n");
  pass(seconds(30));
  EXPECT_EQ(reply_.text, "data: a\n\n");
}

TEST_F(AnswerTest, HasNoDeadlinesWhereNoneAreWanted) {
  config_.first_event_deadline = config_.silence = milliseconds(0);
  ask(kUnary);
  pass(std::chrono::hours(5));
  EXPECT_EQ(reply_.status, 0U);
  call().content_type = "application/json";
  call().chunk("{");
  pass(std::chrono::hours(5));
  call().chunk("}");
  call().finish();
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(AnswerTest, TriesAnotherReplicaForAUnaryAnswerOfWhichTheClientHasNothing) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{\"half\":");
  call().lose(Source::kLost);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).request.body(), kUnary);
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.text, "{}");
  EXPECT_EQ(totals().in_flight, 0U);
}

TEST_F(AnswerTest, TellsWhyAUnaryAnswerBrokeWhereNoOtherReplicaIs) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{");
  call().lose(Source::kLost);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 502U);
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(AnswerTest, CarriesNoUnaryAnswerOnWhoseEngineDied) {
  serve_from({"r1", "r2"});
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{");
  call().fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 503U);
}

TEST_F(AnswerTest, EndsAStreamWhoseEngineFallsSilent) {
  ask(kStream);
  call().chunk("data: a\n\n");
  pass(config_.silence - seconds(1));
  call().chunk("data: b\n\n");
  pass(config_.silence - seconds(1));
  EXPECT_FALSE(done_) << "it was heard in between";
  pass(seconds(2));
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_NE(reply_.text.find("deadline_exceeded"), std::string::npos);
  EXPECT_EQ(reply_.text.find("[DONE]"), std::string::npos);
  EXPECT_EQ(totals().failed, 1U);
}

TEST_F(AnswerTest, TellsAStreamThatTheGatewayEnds) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.end_gateway();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: {\"error\"")) << reply_.text;
  EXPECT_NE(reply_.text.find("\"draining\""), std::string::npos);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(totals().cancelled, 0U) << "the client did not leave";
  EXPECT_EQ(totals().failed, 1U);
}

TEST_F(AnswerTest, TellsAUnaryRequestThatTheGatewayEnds) {
  ask(kUnary);
  reply_.end_gateway();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
  EXPECT_EQ(totals().failed, 1U);
}

TEST_F(AnswerTest, DoesNotCountAClientThatDoesNotReadAsOneThatLeft) {
  ask(kStream);
  reply_.stop_reading();
  call().chunk("data: a\n\n");
  reply_.be_too_slow();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(totals().cancelled, 0U);
  log_text_ += log_.text();
  EXPECT_NE(log_text_.find("client_slow"), std::string::npos);
}

TEST_F(AnswerTest, AnswersWhenSomethingThrows) {
  upstream_.broken = true;
  ask(kUnary);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 500U);
  EXPECT_NE(reply_.text.find("req_1"), std::string::npos);
  EXPECT_EQ(totals().failed, 1U);
  EXPECT_EQ(totals().cancelled, 0U);
}

TEST_F(AnswerTest, DoesNotTakeAChoiceWithoutAnEndForAWholeAnswer) {
  for (const std::string& reason : {std::string("error"), std::string()}) {
    upstream_.calls.clear();
    done_ = false;
    reply_.text.clear();
    ask(kStream);
    call().chunk("data: a\n\n");
    call().finish({"stop", reason});
    EXPECT_TRUE(done_);
    EXPECT_TRUE(reply_.cut_off);
    EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: {\"error\"")) << reply_.text;
    EXPECT_NE(reply_.text.find("choice 1"), std::string::npos);
  }
  EXPECT_EQ(totals().failed, 2U);
}

TEST_F(AnswerTest, AnswersAUnaryRequestWithAnErrorWhenAChoiceHasNoEnd) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{\"half\":1}");
  call().finish({"error"});
  EXPECT_EQ(reply_.status, 502U);
  EXPECT_EQ(reply_.text.find("half"), std::string::npos);
}

TEST_F(AnswerTest, SaysNothingAfterDone) {
  ask(kStream);
  call().chunk("data: a\n\ndata: [DONE]\n\n", 2);
  call().lose(Source::kLost);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "data: a\n\ndata: [DONE]\n\n");
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_F(AnswerTest, EndsWellAfterDoneWhateverTheEngineSaysOfItLater) {
  ask(kStream);
  call().chunk("data: a\n\ndata: [DONE]\n\n", 2);
  call().finish({"error"});
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "data: a\n\ndata: [DONE]\n\n");
  EXPECT_FALSE(reply_.cut_off);
}

TEST_F(AnswerTest, CountsAClientThatLeftAfterDoneAsAnswered) {
  ask(kStream);
  call().chunk("data: a\n\ndata: [DONE]\n\n", 2);
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_F(AnswerTest, CountsAClientThatLeftBeforeDoneAsGone) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.stop_reading();
  call().chunk("data: b\n\n");
  call().chunk("data: [DONE]\n\n");
  call().finish();
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_EQ(totals().succeeded, 0U);
  EXPECT_EQ(totals().cancelled, 1U);
}

TEST_F(AnswerTest, TakesBackADoneThatTheEngineDidNotMean) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.stop_reading();
  call().chunk("data: b\n\n");
  call().chunk("data: c\n\ndata: [DONE]\n\n", 2);
  call().finish({"error"});
  reply_.read_on();
  reply_.read_on();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: b\n\ndata: c\n\ndata: {\"error\""));
  EXPECT_EQ(reply_.text.find("[DONE]"), std::string::npos);
}

TEST_F(AnswerTest, DoesNotTakeAStreamWithoutItsLastEventForAWholeAnswer) {
  ask(kStream);
  call().chunk("data: a\n\n");
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: {\"error\"")) << reply_.text;
  EXPECT_EQ(totals().failed, 1U);
}

struct Told {
  const char* path;
  std::string first;
  std::string last;  // what makes it whole
  std::string broken;
};

// How a stream of each dialect ends, for better and worse.
class DialectTest : public RequestFlowTest, public testing::WithParamInterface<Told> {
 protected:
  DialectTest() { endpoint_ = openai::find_endpoint(GetParam().path); }
  static std::string body() {
    return R"({"model":"mini","stream":true,"messages":[{}],"input":"hi"})";
  }
  // How often `text` stands in what the client has.
  size_t count(const std::string& text) const {
    size_t found = 0;
    for (size_t at = 0; (at = reply_.text.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  void is_told_once() const {
    EXPECT_TRUE(reply_.cut_off);
    EXPECT_EQ(count(GetParam().broken), 1U) << reply_.text;
    EXPECT_EQ(count(GetParam().last), 0U) << reply_.text;
  }
};

TEST_P(DialectTest, AWholeStreamGoesAsItCame) {
  ask(body());
  call().chunk(GetParam().first);
  call().chunk(GetParam().last);
  call().finish();
  EXPECT_EQ(reply_.text, GetParam().first + GetParam().last);
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_P(DialectTest, NothingFollowsTheLastEvent) {
  ask(body());
  call().chunk(GetParam().first + GetParam().last);
  call().lose(Source::kLost);
  EXPECT_EQ(reply_.text, GetParam().first + GetParam().last);
  EXPECT_FALSE(reply_.cut_off);
}

TEST_P(DialectTest, ALostReplicaIsTold) {
  ask(body());
  call().chunk(GetParam().first);
  call().lose(Source::kLost);
  is_told_once();
}

TEST_P(DialectTest, AGatewayThatEndsIsTold) {
  ask(body());
  call().chunk(GetParam().first);
  reply_.end_gateway();
  is_told_once();
}

TEST_P(DialectTest, SilenceIsTold) {
  ask(body());
  call().chunk(GetParam().first);
  pass(2 * config_.silence);
  is_told_once();
}

TEST_P(DialectTest, AnExceptionIsTold) {
  ask(body());
  call().breaks = true;
  call().chunk(GetParam().first + std::string(FakeUpstream::kCredit, '\n'));
  EXPECT_TRUE(done_);
  is_told_once();
}

TEST_P(DialectTest, AnEndThatTheEngineDidNotMeanIsTakenBack) {
  ask(body());
  reply_.stop_reading();
  call().chunk(GetParam().first);
  call().chunk(GetParam().last);
  call().finish({"error"});
  reply_.read_on();
  EXPECT_TRUE(done_);
  is_told_once();
}

TEST_P(DialectTest, AStreamThatOnlyHadHeartbeatsIsTold) {
  ask(body());
  pass(2 * config_.heartbeat);
  EXPECT_TRUE(reply_.streamed);
  call().lose(Source::kLost);
  EXPECT_TRUE(done_);
  is_told_once();
}

INSTANTIATE_TEST_SUITE_P(
    Endpoints, DialectTest,
    testing::Values(
        Told{"/v1/chat/completions", "data: {}\n\n", "data: [DONE]\n\n", "data: {\"error\":"},
        Told{"/v1/responses",
             "event: response.created\ndata: {\"type\":\"response.created\","
             "\"sequence_number\":0,\"response\":{\"id\":\"resp_1\"}}\n\n",
             "event: response.completed\ndata: {\"type\":\"response.completed\","
             "\"sequence_number\":1,\"response\":{}}\n\n",
             "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,"},
        Told{"/v1/messages", "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
             "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
             "event: error\ndata: {\"type\":\"error\","}));

TEST_F(AnswerTest, CountsBytesAsTheyAreWritten) {
  ask(kStream);
  call().chunk("data: a\n\n");
  EXPECT_EQ(metrics_.bytes_sent(), 9U) << "long before the end";
}

TEST_F(AnswerTest, TellsTheTraceAndTheEnginesFacts) {
  const std::string trace = "0af7651916cd43dd8448eb211c80319c";
  ask(kStream, "00-" + trace + "-b7ad6b7169203331-01");
  call().facts.set_model("hub/mini");
  call().facts.set_model_version("weights-1");
  call().facts.set_prompt_tokens(9);
  call().facts.set_cached_tokens(8);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  EXPECT_EQ(reply_.header("x-penstock-trace-id"), trace);
  EXPECT_EQ(reply_.header("x-penstock-backend-version"), "hub/mini@weights-1");
  EXPECT_EQ(reply_.header("x-penstock-model-version"), "weights-1");
  EXPECT_EQ(reply_.header("x-penstock-prefix-hit"), "8");
}

TEST_F(AnswerTest, LogsWhatThereWasOfAnAnswerThatIsNotWhole) {
  ask(kStream);
  call().facts.set_prompt_tokens(9);
  call().facts.set_cached_tokens(8);
  call().chunk("data: a\n\n");
  call().lose(Source::kLost);
  loop_.poll();
  EXPECT_TRUE(reply_.cut_off);
  const std::string log = log_.text();
  EXPECT_NE(log.find(R"("prompt_tokens":9,)"), std::string::npos) << log;
  EXPECT_NE(log.find(R"("cached_tokens":8,)"), std::string::npos) << log;
}

TEST_F(AnswerTest, TellsNoFactThatIsNotKnownOrNoHeader) {
  ask(kStream);
  call().facts.set_model("1\r\nx-evil: 1");
  call().chunk("data: [DONE]\n\n");
  call().finish();
  for (const auto& header : reply_.headers) {
    EXPECT_NE(header.name, "x-penstock-backend-version");
    EXPECT_NE(header.name, "x-penstock-model-version");
    EXPECT_NE(header.name, "x-penstock-prefix-hit") << "no prompt was counted";
  }
  EXPECT_EQ(reply_.header("x-penstock-trace-id").size(), 32U) << "a trace of its own";
}

TEST_F(AnswerTest, TellsTheRoutesModelWhereAnOlderReplicaTellsNone) {
  ask(R"({"model":"mini:pirate","stream":true,"messages":[{}]})");
  call().chunk("data: [DONE]\n\n");
  call().finish();
  EXPECT_EQ(reply_.header("x-penstock-backend-version"), "weights/mini+pirate@1");
}

}  // namespace
}  // namespace penstock::proxy
