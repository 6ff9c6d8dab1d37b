#include "proxy/shadow_copy.h"

#include "shadow_fixture.h"

namespace penstock::proxy {
namespace {

using admission::ShadowOutcome;

TEST_F(ShadowTest, PairsBothAnswersAsTheyCame) {
  ask(kUnary);
  EXPECT_EQ(upstream_.calls.size(), 1U);  // none before the client has its own
  answer(0, R"({"from":"mini"})");
  EXPECT_EQ(reply_.text, R"({"from":"mini"})");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r2");
  answer(1, R"({"from":"next"})");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().rule(), "u1");
  EXPECT_EQ(pair().request_id(), "req_4");
  EXPECT_EQ(pair().body(), kUnary);
  EXPECT_EQ(pair().path(), "/v1/chat/completions");
  EXPECT_FALSE(pair().has_again());
  EXPECT_EQ(pair().primary().body(), R"({"from":"mini"})");
  EXPECT_EQ(pair().primary().deployment(), "mini");
  EXPECT_EQ(pair().primary().status(), 200U);
  EXPECT_EQ(pair().primary().content_type(), "application/json");
  EXPECT_EQ(pair().primary().usage().completion_tokens(), 2U);
  EXPECT_EQ(pair().candidate().body(), R"({"from":"next"})");
  EXPECT_EQ(pair().candidate().deployment(), "next");
  EXPECT_EQ(pair().candidate().replica(), "r2");
  EXPECT_EQ(pair().candidate().status(), 200U);
  EXPECT_EQ(pair().candidate().error_code(), "");
  EXPECT_TRUE(marks().empty());
  EXPECT_EQ(shadow_bytes_.held(), 0U);
  EXPECT_EQ(shadows_.size(), 0U);
}

TEST_F(ShadowTest, PairsStreams) {
  ask(kStream);
  stream(0, "{1}");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  stream(1, "{2}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().primary().body(), "data: {1}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(pair().primary().body(), reply_.text);
  EXPECT_EQ(pair().candidate().body(), "data: {2}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(pair().candidate().error_code(), "");
}

TEST_F(ShadowTest, AsksAsNobodyBehindEverybody) {
  ask(kUnary, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  answer(0, "{}");
  const v1::CallRequest& asked = call(1).request;
  EXPECT_EQ(asked.body(), kUnary);
  EXPECT_EQ(asked.path(), "/v1/chat/completions");
  EXPECT_EQ(asked.traceparent(), "");
  EXPECT_EQ(asked.tenant(), "");
  EXPECT_EQ(asked.tenant_salt(), "salt");
  EXPECT_EQ(asked.priority(), admission::kShadowPriority);
  EXPECT_NE(asked.request_id(), "req_4");
}

TEST_F(ShadowTest, CostsNoTenantAndIsInNoOnesMetrics) {
  ask(kUnary);
  answer(0, "{}");
  answer(1, "{}");
  for (const auto& row : usage_.totals()) {
    const bool is_shadow = row.key.deployment == "next";
    EXPECT_EQ(row.key.tenant, is_shadow ? "_shadow" : "");
    EXPECT_EQ(row.key.key_id, is_shadow ? "u1" : "");
    EXPECT_EQ(row.counts.requests, 1U);
  }
  for (const auto& total : metrics_.totals()) EXPECT_EQ(total.deployment, "mini");
  EXPECT_EQ(settled_lines(), 1U);
}

TEST_F(ShadowTest, AsksThePrimaryAgainWithAnotherSalt) {
  rule_.self_permille = 1000;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r1");
  EXPECT_EQ(call(2).request.tenant_salt(), "salt:self");
  answer(2, "again");
  EXPECT_TRUE(pairs_.pairs.empty());  // not before all were heard
  answer(1, "next");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().again().deployment(), "mini");
  EXPECT_EQ(pair().again().body(), "again");
  EXPECT_EQ(pair().candidate().body(), "next");
  EXPECT_EQ(shadow_bytes_.held(), 0U);
}

TEST_F(ShadowTest, SendsThePrimaryFirstWhereTheLotSaysSo) {
  rule_.self_permille = 1000;
  request_id_ = "req_1";
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(1).request.tenant_salt(), "salt:self");
  EXPECT_EQ(call(2).request.tenant_salt(), "salt");
}

TEST_F(ShadowTest, HoldsAnAnswersBytesUntilTheOtherIsThere) {
  rule_.self_permille = 1000;
  publish();
  ask(kUnary);
  answer(0, "{}");
  answer(1, std::string(10'000, 'x'));
  EXPECT_GE(shadow_bytes_.held(), 10'000U);
  answer(2, "again");
  EXPECT_EQ(shadow_bytes_.held(), 0U);
}

TEST_F(ShadowTest, GoesWithoutThePrimarysSecondAnswerWhereAClientNeedsThePlace) {
  rule_.self_permille = 1000;
  limits_.max_ongoing = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  answer(1, "next");
  ask_as(other_, kUnary);
  EXPECT_TRUE(call(2).cancelled);
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().body(), "next");
  EXPECT_FALSE(pair().has_again());
  EXPECT_EQ(count(ShadowOutcome::kPreempted), 0U);
}

TEST_F(ShadowTest, AsksThePrimaryNoMoreWhereTheCandidateCameToNothing) {
  rule_.self_permille = 1000;
  next_.limits.max_ongoing = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  loop_.poll();
  EXPECT_TRUE(call(2).cancelled);
  EXPECT_TRUE(pairs_.pairs.empty());
  EXPECT_EQ(count(ShadowOutcome::kPreempted), 1U);
  EXPECT_EQ(shadows_.size(), 0U);
}

TEST_F(ShadowTest, AsksThePrimaryAgainAfterTheCandidateWhereOneCopyMayBeUnderWay) {
  rule_.self_permille = 1000;
  rule_.max_concurrent = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  answer(1, "next");
  EXPECT_TRUE(pairs_.pairs.empty());
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r1");
  answer(2, "again");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().body(), "next");
  EXPECT_EQ(pair().again().body(), "again");
  EXPECT_EQ(count(ShadowOutcome::kConcurrency), 0U);
  EXPECT_EQ(shadows_.size(), 0U);
}

TEST_F(ShadowTest, AsksThePrimaryNoMoreWhereTheCandidateThatWentFirstCameToNothing) {
  rule_.self_permille = 1000;
  rule_.max_concurrent = 1;
  next_.limits.max_ongoing = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  EXPECT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(count(ShadowOutcome::kPreempted), 1U);
  EXPECT_EQ(shadows_.size(), 0U);
}

TEST_F(ShadowTest, GoesWithoutThePrimarysSecondAnswerWhereAnotherRequestIsFaster) {
  rule_.self_permille = 1000;
  rule_.max_per_minute = 1;
  rule_.max_concurrent = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  answer(1, "next");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_FALSE(pair().has_again());
}

TEST_F(ShadowTest, IsGivenUpAtOnceWhenAClientNeedsThePlace) {
  next_.limits.max_ongoing = 1;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  ASSERT_EQ(upstream_.calls.size(), 3U);  // it did not have to wait
  EXPECT_TRUE(call(1).cancelled);
  EXPECT_EQ(count(ShadowOutcome::kPreempted), 1U);
  answer(2, "{}");
  EXPECT_EQ(other_.status, 200U);
  EXPECT_EQ(in_flight_at("next"), 0U);
  EXPECT_TRUE(pairs_.pairs.empty());
}

TEST_F(ShadowTest, WaitsForAPlaceAndThenNoMore) {
  next_.limits.max_ongoing = 1;
  publish();
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  ask(kUnary);
  answer(1, "{}");
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(shadows_.size(), 1U);
  answer(0, "{}");
  pass(milliseconds(200));
  ASSERT_EQ(upstream_.calls.size(), 3U);
  answer(2, "{}");
  EXPECT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_GE(pair().candidate().queue_us(), 200'000U);
}

TEST_F(ShadowTest, IsCountedAsNotMadeWhereTheCandidateStaysBusy) {
  next_.limits.max_ongoing = 1;
  publish();
  ask_as(other_, R"({"model":"next","messages":[{}]})");
  ask(kUnary);
  answer(1, "{}");
  for (int i = 0; i < 60; ++i) pass(milliseconds(100));
  EXPECT_EQ(count(ShadowOutcome::kCandidateBusy), 1U);
  EXPECT_EQ(shadows_.size(), 0U);
  EXPECT_EQ(shadow_bytes_.held(), 0U);
}

TEST_F(ShadowTest, TellsOfAnswersThatAreErrors) {
  ask(kUnary);
  answer(0, "{}");
  call(1).fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().status(), 500U);
  EXPECT_EQ(pair().candidate().error_code(), "engine_error");
  EXPECT_FALSE(is_down("r1"));
}

TEST_F(ShadowTest, TellsOfStreamsThatBreak) {
  ask(kStream);
  stream(0, "{}");
  call(1).chunk("data: {}\n\n");
  call(1).finish();
  loop_.poll();
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().error_code(), "upstream_error");
  EXPECT_EQ(pair().candidate().body(), "data: {}\n\n");
}

TEST_F(ShadowTest, ComparesADeploymentWithItself) {
  rule_.candidate = "mini";
  rule_.self_permille = 1000;
  limits_.max_ongoing = 2;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  ask_as(other_, kUnary);  // whose own shadows wait until there is a place
  EXPECT_TRUE(call(2).cancelled);
  answer(1, "once more");
  answer(3, "{}");
  EXPECT_EQ(other_.status, 200U);
  EXPECT_EQ(pair().candidate().body(), "once more");
  EXPECT_EQ(pair().candidate().deployment(), "mini");
  EXPECT_FALSE(pair().has_again());
  EXPECT_EQ(upstream_.calls.size(), 6U);
}

TEST_F(ShadowTest, TakesNoSecondEngineWithIt) {
  ask(kUnary);
  answer(0, "{}");
  call(1).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().error_code(), "engine_dead");
  EXPECT_FALSE(suspects_.empty());
  ask_as(other_, kUnary);  // the primary has an engine of its own
  answer(2, "{}");
  EXPECT_EQ(other_.status, 200U);
  EXPECT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

TEST_F(ShadowTest, TellsOfACandidateThatIsNotThere) {
  next_state_ = routing::ReplicaState::kDraining;
  publish();
  ask(kUnary);
  answer(0, "{}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().status(), 503U);
  EXPECT_EQ(pair().candidate().error_code(), "no_ready_replica");
}

TEST_F(ShadowTest, TellsOfOneThatHangs) {
  config_.first_event_deadline = seconds(2);
  ask(kUnary);
  answer(0, "{}");
  for (int i = 0; i < 30; ++i) pass(milliseconds(100));
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(pair().candidate().status(), 504U);
  EXPECT_EQ(pair().candidate().error_code(), "deadline_exceeded");
  EXPECT_TRUE(call(1).cancelled);
}

TEST_F(ShadowTest, TriesAnotherReplicaAsAClientsRequestIs) {
  ask(kUnary);
  answer(0, "{}");
  routing::RouteSnapshot snapshot{
      .version = ++version_,
      .deployments = {routing::deployment("mini"), next_},
      .replicas = {routing::replica("r1", "mini"), routing::replica("r2", "next"),
                   routing::replica("r3", "next")}};
  routes_.replace(snapshot);
  call(1).fail(503, "draining", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).replica, "r3");
  answer(2, "{}");
  EXPECT_EQ(pair().candidate().error_code(), "");
}

}  // namespace
}  // namespace penstock::proxy
