// For each reason the rung that helps.
#include "degrade_fixture.h"

namespace penstock::proxy {
namespace {

using DegradeReasonsTest = DegradeTest;

TEST_F(DegradeReasonsTest, GivesTheTurnInTheQueueBackAtItsDeadline) {
  limits_.queue_deadline = seconds(5);
  occupy(10);
  ask(kUnary);
  EXPECT_EQ(routes_.of("mini").standing().queued, 1U);
  pass(seconds(6));
  EXPECT_EQ(routes_.of("mini").standing().queued, 0U);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r2");
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "queue_deadline");
  EXPECT_EQ(reply_.header("x-penstock-queue-ms"), "6000");
}

TEST_F(DegradeReasonsTest, TellsAStreamThatWasOpenedEarlyByComments) {
  limits_.queue_deadline = seconds(20);
  occupy(10);
  ask(kStream);
  pass(seconds(16));
  EXPECT_EQ(reply_.status, 200U);
  pass(seconds(5));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).chunk("data: a\n\n");
  EXPECT_NE(reply_.text.find(": x-penstock-backend: big\n"), std::string::npos) << reply_.text;
  EXPECT_NE(reply_.text.find(": x-penstock-degraded: queue_deadline\n"), std::string::npos)
      << reply_.text;
}

TEST_F(DegradeReasonsTest, AnswersForADeploymentThatHasNoReplica) {
  mini_state_ = routing::ReplicaState::kStarting;
  publish();
  ask(kUnary);
  answer(0);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "model_loading");
}

TEST_F(DegradeReasonsTest, AnswersForADeploymentWhoseBudgetIsUsedUp) {
  used_up_ = true;
  publish();
  ask(kUnary);
  answer(0);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "budget");
}

TEST_F(DegradeReasonsTest, AnswersWhereNoReplicaIsLeftToTry) {
  ask(kUnary);
  call(0).lose(Source::kUnreachable);
  loop_.poll();
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "no_ready_replica");
  EXPECT_EQ(used("big").requests, 1U);
  EXPECT_EQ(used("mini").requests, 0U) << "it is one request";
}

TEST_F(DegradeReasonsTest, SendsWhatEnginesDieOfToWhoHasNone) {
  ask(kUnary);
  call(0).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r3") << "big has an engine";
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "engine_dead");
  const auto fingerprint = admission::fingerprint_of("", "/v1/chat/completions", kUnary);
  EXPECT_EQ(*suspects_.suspicion(fingerprint, clock_.wall_now()), admission::Suspicion::kSuspect);
}

TEST_F(DegradeReasonsTest, SendsTheQuarantinedToWhoHasNoEngineAndToNobodyElse) {
  const auto fingerprint = admission::fingerprint_of("", "/v1/chat/completions", kUnary);
  suspects_.died({.fingerprint = fingerprint,
                  .deployment = "mini",
                  .deployment_uid = "",
                  .path = "/v1/chat/completions",
                  .deaths = {{"r8"}, {"r9"}},
                  .until = {}},
                 clock_.wall_now());
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call(0).replica, "r3");
  answer(0);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "engine_dead");
  ladder({fallback("big")});
  done_ = false;
  ask(kUnary);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "quarantined");
}

TEST_F(DegradeReasonsTest, SendsASuspectOfAnyReasonToWhoHasNoEngine) {
  ask_as(other_, kStream);
  ladder({fallback("big"), fallback("canned")});
  ask(kUnary);
  call(1).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  call(2).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(upstream_.calls.size(), 3U) << "big has an engine";
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("engine_dead"), std::string::npos) << reply_.text;
}

TEST_F(DegradeReasonsTest, TrimsAPromptThatTheModelDoesNotTake) {
  ladder({fallback("big"), kTrim});
  ask(kUnary);
  EXPECT_FALSE(call(0).request.trim());
  too_long(0);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  EXPECT_TRUE(call(1).request.trim());
  call(1).facts.set_trimmed_messages(3);
  call(1).facts.set_trimmed_tokens(812);
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "context_length_exceeded");
  EXPECT_EQ(reply_.header("x-penstock-trimmed"), "messages=3, tokens=812");
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
  EXPECT_TRUE(
      metric("penstock_gateway_degraded_total{deployment=\"mini\","
             "reason=\"context_length_exceeded\",rung=\"trim\"} 1"));
}

TEST_F(DegradeReasonsTest, SaysNothingOfATrimThatWasNotNeeded) {
  ladder({kTrim});
  ask(kUnary);
  too_long(0);
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "");
  EXPECT_EQ(reply_.header("x-penstock-trimmed"), "");
}

TEST_F(DegradeReasonsTest, TellsTheFirstRefusalWhereTrimmingDoesNotHelp) {
  ladder({kTrim});
  ask(kUnary);
  too_long(0);
  too_long(1);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_NE(reply_.text.find("context_length_exceeded"), std::string::npos) << reply_.text;
}

TEST_F(DegradeReasonsTest, TakesARungForWhatStopsATrimmedRequest) {
  ladder({kTrim, fallback("big")});
  ask(kUnary);
  too_long(0);
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r2");
  EXPECT_TRUE(call(2).request.trim());
  answer(2);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "upstream_failed");
}

TEST_F(DegradeReasonsTest, TrimsAtOnceWhereTheDeploymentDoes) {
  mini_trims_ = true;
  limits_.max_prompt_tokens = 1;
  publish();
  ask(R"({"model":"mini","messages":[{"content":")" + std::string(2000, 'x') + "\"}]}");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_TRUE(call(0).request.trim());
  call(0).facts.set_trimmed_messages(1);
  call(0).facts.set_trimmed_tokens(400);
  answer(0);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "context_length_exceeded");
  EXPECT_EQ(reply_.header("x-penstock-trimmed"), "messages=1, tokens=400");
  done_ = false;
  ask_never(kUnary);
  EXPECT_FALSE(call(1).request.trim());
}

TEST_F(DegradeTest, TellsLogAndClientWhyNoRungHelped) {
  ladder({fallback("gone"), fallback("big"), fallback("canned")});
  occupy();
  ask(kUnary);
  ASSERT_EQ(call(1).replica, "r2");
  call(1).fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  loop_.poll();
  ASSERT_EQ(call(2).replica, "r3");
  v1::CallEvent event;
  auto& error = *event.mutable_failed()->mutable_error();
  error.set_status(400);
  error.set_code("unsupported_parameter");
  error.set_param("guided_json");
  call(2).put(event);
  call(2).call->news().raise();
  loop_.poll();
  EXPECT_EQ(reply_.status, 429U);
  const auto* const tried =
      "gone=unknown, fallback:big=engine_error, fallback:canned=unsupported_parameter(guided_json)";
  EXPECT_NE(reply_.text.find(tried), std::string::npos) << reply_.text;
  settled_lines();
  const auto* const left =
      "mini=queue_full, gone=unknown, big=engine_error, canned=unsupported_parameter(guided_json)";
  EXPECT_NE(log_text_.find(left), std::string::npos) << log_text_;
}

}  // namespace
}  // namespace penstock::proxy
