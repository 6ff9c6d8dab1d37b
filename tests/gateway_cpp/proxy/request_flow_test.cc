#include "proxy/request_flow.h"

#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

TEST_F(RequestFlowTest, PassesAStreamOnByteForByte) {
  ask(kStream);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().request.body(), kStream);
  EXPECT_EQ(call().request.path(), "/v1/chat/completions");
  EXPECT_EQ(call().request.model(), "mini");
  EXPECT_EQ(call().request.request_id(), "req_1");
  EXPECT_EQ(reply_.status, 0U) << "no head before the first event";
  call().chunk("data: a\n\n");
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.content_type, "text/event-stream");
  EXPECT_EQ(reply_.header("x-penstock-replica"), "r1");
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
  EXPECT_EQ(reply_.header("cache-control"), "no-cache");
  EXPECT_EQ(reply_.header("x-accel-buffering"), "no");
  call().chunk("data: b\n\ndata: [DONE]\n\n", 2);
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, "data: a\n\ndata: b\n\ndata: [DONE]\n\n");
  EXPECT_TRUE(reply_.ended);
  EXPECT_FALSE(reply_.cut_off);
  EXPECT_EQ(totals().succeeded, 1U);
  EXPECT_EQ(totals().prompt_tokens, 3U);
  EXPECT_EQ(totals().completion_tokens, 2U);
  EXPECT_EQ(settled_lines(), 1U);
  EXPECT_EQ(state_.in_flight.load(), 0U);
}

TEST_F(RequestFlowTest, AnswersAUnaryRequestWithTheWholeBody) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{\"id\":");
  EXPECT_EQ(reply_.status, 0U);
  call().chunk("1}");
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.text, "{\"id\":1}");
  EXPECT_FALSE(reply_.streamed);
  EXPECT_EQ(totals().succeeded, 1U);
}

TEST_F(RequestFlowTest, AsksForTheAdapterBehindAnAlias) {
  ask(R"({"model":"mini:pirate","messages":[{}],"stream":true})");
  EXPECT_EQ(call().request.model(), "mini:pirate");
  EXPECT_EQ(call().request.adapter(), "pirate@1");
}

TEST_F(RequestFlowTest, RefusesWhatIsNotJsonWithoutAskingAReplica) {
  ask("{nope");
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_EQ(reply_.header("x-should-retry"), "false");
  EXPECT_TRUE(upstream_.calls.empty());
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(RequestFlowTest, SaysThatAModelDoesNotExist) {
  ask(R"({"model":"other","messages":[{}]})");
  EXPECT_EQ(reply_.status, 404U);
  EXPECT_NE(reply_.text.find("model_not_found"), std::string::npos);
}

TEST_F(RequestFlowTest, RefusesWhileReplicasAreStarting) {
  serve_from({"r1"}, routing::ReplicaState::kStarting);
  ask(kStream);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("model_loading"), std::string::npos);
  EXPECT_NE(reply_.header("retry-after"), "");
  EXPECT_EQ(totals().rejected, 1U);
  EXPECT_EQ(state_.in_flight.load(), 0U);
}

TEST_F(RequestFlowTest, TriesAnotherReplicaWhenOneCannotBeReached) {
  serve_from({"r1", "r2"});
  ask(kStream);
  const std::string first = call(0).replica;
  call(0).lose(Source::kUnreachable);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_NE(call(1).replica, first);
  EXPECT_EQ(call(1).request.body(), kStream);
  call(1).chunk("data: a\n\ndata: [DONE]\n\n", 2);
  call(1).finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.header("x-penstock-replica"), call(1).replica);
  EXPECT_EQ(totals().succeeded, 1U);
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(RequestFlowTest, AnswersWithAStatusWhenNoReplicaIsLeft) {
  ask(kStream);
  call().lose(Source::kLost);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 502U);
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
  EXPECT_EQ(totals().failed, 1U);
  EXPECT_TRUE(is_down("r1"));
}

TEST_F(RequestFlowTest, TellsATimeToComeBackWhereNoReplicaIsReached) {
  ask(kStream);
  call().lose(Source::kUnreachable);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "no_ready_replica");
  EXPECT_EQ(reply_.header("retry-after"), "2");
}

TEST_F(RequestFlowTest, NamesTheReplicaThatAnswersAfterAllInAStreamThatIsOpen) {
  serve_from({"r1", "r2"});
  ask(kStream);
  pass(config_.heartbeat + seconds(1));
  const std::string first = call(0).replica;
  EXPECT_EQ(reply_.header("x-penstock-replica"), first);
  call(0).lose(Source::kUnreachable);
  call(1).chunk("data: a\n\n");
  EXPECT_NE(reply_.text.find(": x-penstock-replica: " + call(1).replica + "\n"), std::string::npos);
  EXPECT_EQ(reply_.text.find("x-penstock-trace-id"), std::string::npos);
}

TEST_F(RequestFlowTest, DoesNotRetryTheClientsFaultNorBlameTheReplica) {
  serve_from({"r1", "r2"});
  ask(kStream);
  call().fail(400, "context_length_exceeded", v1::FAULT_CLIENT, v1::RETRY_NEVER);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_EQ(reply_.header("x-should-retry"), "false");
  EXPECT_NE(reply_.text.find("context_length_exceeded"), std::string::npos);
  EXPECT_FALSE(is_down("r1") || is_down("r2"));
  EXPECT_EQ(totals().failed, 0U);
}

TEST_F(RequestFlowTest, EndsAStreamWhoseReplicaDiedWithAnErrorAndNoDone) {
  serve_from({"r1", "r2"});
  ask(kStream);
  call().chunk("data: a\n\n");
  call().lose(Source::kLost);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "the client has seen something";
  EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: {\"error\":{"));
  EXPECT_EQ(reply_.text.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(totals().failed, 1U);
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(RequestFlowTest, WritesWhatCameBeforeAFailureInTheSameFrame) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.stop_reading();
  call().chunk("data: b\n\n");
  call().chunk("data: c\n\n");
  call().lose(Source::kLost);
  reply_.read_on();
  reply_.read_on();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.text.starts_with("data: a\n\ndata: b\n\ndata: c\n\ndata: {\"error\""));
}

TEST_F(RequestFlowTest, CancelsTheCallWhenTheClientLeavesBeforeTheFirstEvent) {
  ask(kStream);
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(reply_.status, 0U);
  EXPECT_EQ(totals().cancelled, 1U);
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(RequestFlowTest, CancelsTheCallWhenTheClientLeavesAStream) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(totals().cancelled, 1U);
  EXPECT_EQ(state_.in_flight.load(), 0U);
}

TEST_F(RequestFlowTest, CancelsTheCallWhenTheClientLeavesAUnaryRequest) {
  ask(kUnary);
  call().content_type = "application/json";
  call().chunk("{");
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
}

TEST_F(RequestFlowTest, GivesNoCreditWhileTheClientIsSlow) {
  ask(kStream);
  call().chunk("data: a\n\n");
  reply_.stop_reading();
  call().chunk(std::string(90, 'x'));
  call().chunk(std::string(90, 'y'));
  EXPECT_EQ(call().granted, 0U);
  EXPECT_EQ(reply_.text.find('y'), std::string::npos) << "kept at the call, not at the client";
  reply_.read_on();
  EXPECT_GE(call().granted, 180U);
  EXPECT_NE(reply_.text.find('y'), std::string::npos);
}

TEST_F(RequestFlowTest, OpensTheStreamEarlyToSayThatItLives) {
  ask(kStream);
  pass(config_.heartbeat - seconds(1));
  EXPECT_EQ(reply_.text, "");
  pass(seconds(2));
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.text, ": ping\n\n");
  call().chunk("data: a\n\n");
  const std::string begun = ": ping\n\n: x-penstock-backend-version: weights/mini\n\ndata: a\n\n";
  EXPECT_EQ(reply_.text, begun);
  pass(config_.heartbeat / 2);
  EXPECT_EQ(reply_.text, begun);
  pass(config_.heartbeat);
  EXPECT_EQ(reply_.text, begun + ": ping\n\n");
}

TEST_F(RequestFlowTest, TellsAFailureInTheStreamOnceItIsOpen) {
  ask(kStream);
  pass(config_.heartbeat + seconds(1));
  call().fail(503, "draining", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_TRUE(reply_.text.starts_with(": ping\n\ndata: {\"error\""));
  EXPECT_TRUE(reply_.cut_off);
}

TEST_F(RequestFlowTest, SendsNoHeartbeatForAUnaryRequest) {
  ask(kUnary);
  pass(3 * config_.heartbeat);
  EXPECT_EQ(reply_.status, 0U);
}

TEST_F(RequestFlowTest, GivesUpAtTheFirstEventDeadline) {
  limits_.first_event_deadline = milliseconds(500);
  serve_from({"r1"});
  ask(kStream);
  pass(milliseconds(400));
  EXPECT_FALSE(done_);
  pass(milliseconds(300));
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 504U);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(totals().failed, 1U);
}

TEST_F(RequestFlowTest, HasNoDeadlineAfterTheFirstEvent) {
  limits_.first_event_deadline = milliseconds(500);
  serve_from({"r1"});
  ask(kStream);
  call().chunk("data: a\n\n");
  pass(seconds(5));
  EXPECT_FALSE(done_);
}

TEST_F(RequestFlowTest, RefusesNewRequestsOnceItsDrainIsOver) {
  state_.ending = true;
  ask(kStream);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("draining"), std::string::npos);
}

TEST_F(RequestFlowTest, CountsCallsOnTheReplicaAsLongAsTheyLast) {
  ask(kStream);
  EXPECT_EQ(in_flight(), 1U);
  call().chunk("data: a\n\n");
  call().finish();
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(RequestFlowTest, MeansTheOnlyDeploymentWhereNoModelIsNamed) {
  ask(R"({"messages":[{}]})");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().request.model(), "mini");
  EXPECT_EQ(call().request.body(), R"({"messages":[{}]})");
}

TEST_F(RequestFlowTest, SendsTheFirstNameOfEachEndpoint) {
  for (const openai::Endpoint& endpoint : openai::endpoints()) {
    if (endpoint.by_body) continue;
    endpoint_ = &endpoint;
    FakeReply client;
    ask_as(client, R"({"model":"mini","messages":[{}],"prompt":"a","input":"a"})");
    EXPECT_EQ(upstream_.calls.back()->request.path(), endpoint.path);
    client.leave();
    loop_.poll();
  }
}

TEST_F(RequestFlowTest, RefusesWhatTheModelCannotDoInTheEndpointsWords) {
  endpoints_ = {"/v1/embeddings"};
  serve_from({"r1"});
  endpoint_ = openai::find_endpoint("/v1/messages");
  ask(kUnary);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_TRUE(reply_.text.starts_with(R"({"type":"error","error":{"type":"invalid_request_error")"))
      << reply_.text;
  EXPECT_TRUE(reply_.text.ends_with(R"("request_id":"req_1"})")) << reply_.text;
  EXPECT_TRUE(upstream_.calls.empty());
}

}  // namespace
}  // namespace penstock::proxy
