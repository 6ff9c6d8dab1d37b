// How answers end, other than well.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

class AnswerTest : public RequestFlowTest {};

TEST_F(AnswerTest, FreesTheReplicasSlotWhenTheCallHasEndedAndNotWhenTheClientHasRead) {
  ask(kStream);
  call().chunk("data: a\n\n");
  EXPECT_EQ(tracker().in_flight(), 1U);
  reply_.stop_reading();
  call().chunk("data: b\n\n");
  call().chunk("data: c\n\ndata: [DONE]\n\n", 2);
  call().finish();
  EXPECT_FALSE(done_);
  EXPECT_EQ(tracker().in_flight(), 0U) << "the client still reads, the replica is free";
  reply_.read_on();
  reply_.read_on();
  EXPECT_TRUE(done_);
  EXPECT_EQ(tracker().in_flight(), 0U);
}

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

TEST_F(AnswerTest, DoesNotTakeASlowClientForASilentEngine) {
  ask(kStream);
  reply_.stop_reading();
  call().chunk("data: a\n\n");
  pass(2 * config_.silence);
  reply_.read_on();
  EXPECT_FALSE(done_);
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(totals().succeeded, 1U);
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

TEST_F(AnswerTest, CountsBytesAsTheyAreWritten) {
  ask(kStream);
  call().chunk("data: a\n\n");
  EXPECT_EQ(metrics_.bytes_sent(), 9U) << "long before the end";
}

}  // namespace
}  // namespace penstock::proxy
