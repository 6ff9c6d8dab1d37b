// Which requests are repeated, and with which marks.
#include "shadow_fixture.h"

namespace penstock::proxy {
namespace {

using admission::ShadowOutcome;

class SamplingTest : public ShadowTest {
 protected:
  // Asks and is answered; how many calls there were.
  size_t calls_for(const std::string& body = kUnary) {
    ask(body);
    answer(0, "{}");
    return upstream_.calls.size();
  }
  size_t calls_of(const admission::Tenant& tenant) {
    Ask asked;
    asked.request_id = "req_1";
    asked.endpoint = endpoint_;
    asked.body = kUnary;
    asked.received = clock_.steady_now();
    asked.caller = caller();
    asked.caller.tenant = std::make_shared<const admission::Tenant>(tenant);
    loop_.spawn(run(std::move(asked)));
    loop_.poll();
    answer(0, "{}");
    return upstream_.calls.size();
  }
};

TEST_F(SamplingTest, LeavesOthersAlone) {
  rule_.share_permille = 0;
  publish();
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_TRUE(shadow_book_.rows().empty());
}

TEST_F(SamplingTest, RepeatsNothingOfATenantThatSaysNever) {
  EXPECT_EQ(calls_of({.id = "acme", .shadow_never = true}), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotAllowed), 1U);
}

TEST_F(SamplingTest, ShowsAProviderNothingOfTenantsThatKeepToTheHouse) {
  next_.managed = true;
  publish();
  EXPECT_EQ(calls_of({.id = "acme", .degrade_never = true}), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotAllowed), 1U);
}

TEST_F(SamplingTest, AsksNobodyWhoCannotAnswerAsItWasAsked) {
  next_.without_tools = true;
  publish();
  EXPECT_EQ(calls_for(R"({"model":"mini","messages":[{}],"tools":[{"type":"function"}]})"), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

TEST_F(SamplingTest, AsksNoCandidateThatIsGone) {
  has_next_ = false;
  publish();
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

TEST_F(SamplingTest, AsksNobodyWhereNobodyCompares) {
  pairs_.there = false;
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNoComparer), 1U);
}

TEST_F(SamplingTest, AsksNobodyWhileTheComparerIsBehind) {
  pairs_.room = false;
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kOverload), 1U);
}

TEST_F(SamplingTest, RepeatsNothingOnceTheRuleHasEnded) {
  ask(kUnary);
  routes_.replace({.version = ++version_,
                   .deployments = {routing::deployment("mini"), next_},
                   .replicas = {routing::replica("r1", "mini"), routing::replica("r2", "next")}});
  answer(0, "{}");
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

TEST_F(SamplingTest, GoesByTheRuleAsItIsOnceTheClientWasAnswered) {
  ask(kUnary);
  rule_.budget_used_up = true;
  publish();
  answer(0, "{}");
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kBudget), 1U);
}

TEST_F(SamplingTest, KeepsNoBodyThatThereIsNoRoomFor) {
  runtime::BodyShare taken(shadow_bytes_);
  ASSERT_TRUE(taken.grow_to(shadow_bytes_.total()));
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kBodyBudget), 1U);
}

TEST_F(SamplingTest, CutsAnAnswerThatThereIsNoRoomFor) {
  ask(kUnary);
  runtime::BodyShare taken(shadow_bytes_);
  ASSERT_TRUE(taken.grow_to(shadow_bytes_.total() - shadow_bytes_.held()));
  answer(0, "{}");
  EXPECT_EQ(reply_.text, "{}");
  taken.shrink_to(0);
  answer(1, "{}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_TRUE(pair().primary().cut());
  EXPECT_EQ(pair().primary().body(), "");
  EXPECT_FALSE(pair().candidate().cut());
}

TEST_F(SamplingTest, KeepsToTheMoneyOfTheRule) {
  rule_.nanousd_per_day = 1;
  next_.prices = {.input = 1, .output = 1};
  publish();
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kBudget), 1U);
}

TEST_F(SamplingTest, KeepsToTheBudgetOfTheCandidate) {
  next_.budget_tokens = 1;
  publish();
  EXPECT_EQ(calls_for(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kBudget), 1U);
}

TEST_F(SamplingTest, MarksWhoseClientLeft) {
  ask(kStream);
  call(0).chunk("data: {1}\n\n");
  loop_.poll();
  reply_.leave();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  stream(1, "{2}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(marks(), std::vector<std::string>{"client_left"});
  EXPECT_EQ(pair().primary().body(), "data: {1}\n\n");
}

TEST_F(SamplingTest, MarksWhatWasRefused) {
  limits_.max_n = 1;
  publish();
  ask(R"({"model":"mini","messages":[{}],"n":2})");
  EXPECT_EQ(reply_.status, 400U);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  answer(0, "{}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(marks(), std::vector<std::string>{"refused"});
}

TEST_F(SamplingTest, MarksWhatFailedOverAndKeepsTheAnswerThatCounts) {
  auto mini = routing::deployment("mini");
  mini.shadows = {rule_};
  routes_.replace({.version = ++version_,
                   .deployments = {mini, next_},
                   .replicas = {routing::replica("r1", "mini"), routing::replica("r3", "mini"),
                                routing::replica("r2", "next")}});
  ask(kUnary);
  call(0).content_type = "application/json";
  call(0).chunk("half of ");
  call(0).lose(Source::kLost);
  loop_.poll();
  answer(1, "{}");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  answer(2, "{}");
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  EXPECT_EQ(marks(), std::vector<std::string>{"failed_over"});
  EXPECT_EQ(pair().primary().body(), "{}");
}

TEST_F(SamplingTest, TriesNothingThatEnginesDieOf) {
  ask(kUnary);
  call(0).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ShadowOutcome::kNotComparable), 1U);
}

TEST_F(SamplingTest, RepeatsALargeBodyWithoutItsClientsShare) {
  const std::string large =
      R"({"model":"mini","messages":[{"content":")" + std::string(100'000, 'x') + R"("}]})";
  ask(large);
  ASSERT_TRUE(loop_.run_until([&] { return upstream_.calls.size() == 1; }));
  answer(0, "{}");
  ASSERT_TRUE(loop_.run_until([&] { return upstream_.calls.size() == 2; }));
  EXPECT_EQ(call(1).request.body(), large);
  EXPECT_GE(shadow_bytes_.held(), large.size());
  answer(1, "{}");
  EXPECT_EQ(pair().body(), large);
  EXPECT_EQ(shadow_bytes_.held(), 0U);
}

}  // namespace
}  // namespace penstock::proxy
