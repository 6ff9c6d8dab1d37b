// Requests that go down a ladder: which rung takes them, and what their clients are told.
#include "degrade_fixture.h"

namespace penstock::proxy {
namespace {

TEST_F(DegradeTest, AnswersFromAnotherDeploymentAndSaysSo) {
  occupy();
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r2");
  EXPECT_EQ(call(1).request.model(), "mini") << "as the client wrote it";
  EXPECT_FALSE(call(1).request.trim());
  call(1).facts.set_model("weights/big");
  call(1).facts.set_model_version("v7");
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "queue_full");
  EXPECT_EQ(reply_.header("x-penstock-backend"), "big");
  EXPECT_EQ(reply_.header("x-penstock-backend-version"), "weights/big@v7");
  EXPECT_EQ(reply_.header("x-penstock-replica"), "r2");
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "");
  EXPECT_EQ(in_flight_at("big"), 0U);
  EXPECT_EQ(in_flight_at("mini"), 1U);
  EXPECT_TRUE(
      metric("penstock_gateway_degraded_total{deployment=\"mini\",reason=\"queue_full\","
             "rung=\"fallback:big\"} 1"));
  EXPECT_TRUE(metric("penstock_gateway_drops_total{deployment=\"mini\",reason=\"queue_full\"} 1"));
  settled_lines();
  EXPECT_NE(log_text_.find(R"("degraded":"queue_full","rung":"fallback:big","asked":"mini")"),
            std::string::npos)
      << log_text_;
}

TEST_F(DegradeTest, SaysNothingOfLaddersWhereNoneIsNeeded) {
  ask(kUnary);
  answer(0);
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
  EXPECT_EQ(reply_.header("x-penstock-backend-version"), "weights/mini");
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "");
  settled_lines();
  EXPECT_EQ(log_text_.find("degraded"), std::string::npos) << log_text_;
}

TEST_F(DegradeTest, GoesOnWhereARungRefuses) {
  big_limits_.max_completion_tokens = 1;
  occupy();
  ask(R"({"model":"mini","max_tokens":2,"messages":[{}]})");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r3");
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "queue_full") << "why mini did not answer";
  EXPECT_EQ(reply_.header("x-penstock-backend"), "canned");
}

TEST_F(DegradeTest, GoesOnWhereARungBreaksBeforeItsFirstByte) {
  occupy();
  ask(kStream);
  call(1).fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r3");
  call(2).chunk("data: a\n\n");
  call(2).chunk("data: [DONE]\n\n");
  call(2).finish();
  loop_.poll();
  EXPECT_EQ(reply_.header("x-penstock-backend"), "canned");
  EXPECT_EQ(totals().in_flight, 0U);
}

TEST_F(DegradeTest, GoesOnWhereAUnaryAnswerBreaksInTheMiddle) {
  occupy();
  ask(kUnary);
  call(1).content_type = "application/json";
  call(1).chunk("{");
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  answer(2, "{\"whole\":1}");
  EXPECT_EQ(reply_.text, "{\"whole\":1}");
  EXPECT_EQ(reply_.header("x-penstock-backend"), "canned");
}

TEST_F(DegradeTest, EndsTruthfullyWhereAStreamBreaksThatHasBegun) {
  occupy();
  ask(kStream);
  call(1).chunk("data: a\n\n");
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(upstream_.calls.size(), 2U);
}

TEST_F(DegradeTest, TellsTheFirstRefusalWhereNoRungIsLeft) {
  rungs_ = {fallback("big")};
  occupy();
  ask(kUnary);
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(reply_.status, 429U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "queue_full");
  EXPECT_EQ(reply_.header("x-should-retry"), "true");
  EXPECT_NE(reply_.header("retry-after"), "");
  EXPECT_EQ(reply_.header("x-penstock-backend"), "") << "it went nowhere";
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "");
  EXPECT_TRUE(metric("penstock_gateway_in_flight{deployment=\"big\"} 0"));
  EXPECT_TRUE(metric("penstock_gateway_attempts_total{deployment=\"big\"} 1"));
  EXPECT_TRUE(metric(
      "penstock_gateway_requests_total{deployment=\"mini\",outcome=\"rejected\",code=\"429\"} 1"));
}

TEST_F(DegradeTest, LogsWhatThereWasOfTheAnswerThatItEndsWith) {
  ladder({fallback("big")});
  ask(kUnary);
  call(0).content_type = "application/json";
  call(0).facts.set_prompt_tokens(9);
  call(0).chunk("{");
  call(0).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).facts.set_prompt_tokens(7);
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(reply_.status, 500U);
  settled_lines();
  EXPECT_NE(log_text_.find(R"("prompt_tokens":9,)"), std::string::npos) << log_text_;
}

TEST_F(DegradeTest, IsNotDoneWhereTheClientSaysNever) {
  occupy();
  ask_never(kUnary);
  EXPECT_EQ(reply_.status, 429U);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(DegradeTest, IsNotDoneForWhatIsWrongWithTheRequest) {
  ask(R"({"model":"mini","n":17,"messages":[{}]})");
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_TRUE(upstream_.calls.empty());
}

TEST_F(DegradeTest, BooksWhatAFailedAttemptCostWhereItWasMade) {
  ask(kUnary);
  v1::CallEvent event;
  event.mutable_failed()->mutable_error()->set_status(500);
  event.mutable_failed()->mutable_error()->set_code("internal_error");
  event.mutable_failed()->mutable_usage()->set_prompt_tokens(7);
  event.mutable_failed()->mutable_usage()->set_cost_nanousd(70);
  call(0).put(event);
  call(0).call->news().raise();
  loop_.poll();
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "upstream_failed");
  EXPECT_EQ(used("mini").prompt_tokens, 7U);
  EXPECT_EQ(used("mini").cost_nanousd, 70U);
  EXPECT_EQ(used("mini").requests, 0U);
  EXPECT_EQ(used("big").prompt_tokens, 3U);
  EXPECT_EQ(used("big").requests, 1U);
}

TEST_F(DegradeTest, EndsWithTheTimeForTheFirstEvent) {
  config_.first_event_deadline = seconds(10);
  ask(kUnary);
  pass(seconds(11));
  EXPECT_EQ(reply_.status, 504U);
  EXPECT_EQ(upstream_.calls.size(), 1U) << "no time is left for a rung";
}

TEST_F(DegradeTest, LeavesARungNoMoreTimeThanTheRequestHas) {
  config_.first_event_deadline = seconds(10);
  limits_.first_event_deadline = seconds(6);
  publish();
  ask(kUnary);
  pass(seconds(7));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  pass(seconds(4));
  EXPECT_TRUE(call(1).cancelled);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.status, 504U);
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
}

TEST_F(DegradeTest, EndsWithAClientThatLeaves) {
  big_limits_.max_ongoing = 1;
  occupy();
  FakeReply third;
  ask_as(third, kUnary);
  ASSERT_EQ(call(1).replica, "r2");
  ask(kUnary);
  EXPECT_EQ(routes_.of("big").standing().queued, 1U);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(routes_.of("big").standing().queued, 0U);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  third.leave();
  loop_.poll();
}

TEST_F(DegradeTest, GoesByTheLadderOfWhoWasAskedAlsoFromACanary) {
  auto mini = routing::deployment("mini");
  auto next = routing::deployment("next");
  mini.canary = {{"next", 1000}};
  mini.ladders = {{"", {fallback("next"), fallback("canned")}}};
  next.ladders = {{"", {fallback("nobody")}}};
  routes_.replace({.version = ++version_,
                   .deployments = {mini, next, routing::deployment("canned")},
                   .replicas = {routing::replica("r1", "mini"), routing::replica("r2", "next"),
                                routing::replica("r3", "canned")}});
  ask(kUnary);
  EXPECT_EQ(call(0).replica, "r2");
  call(0).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1") << "the one that was asked goes before its ladder";
  call(1).fail(500, "internal_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r3") << "its canary has had it";
  answer(2);
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "upstream_failed");
}

}  // namespace
}  // namespace penstock::proxy
