// Requests that a canary has and cannot answer: they are newcomers to the deployment that was
// asked, and each deployment has what happened there.
#include <array>
#include <map>
#include <random>

#include "degrade_fixture.h"
#include "http/metrics_page.h"

namespace penstock::proxy {
namespace {

class CanaryTest : public RequestFlowTest {
 protected:
  CanaryTest() { publish(); }
  ~CanaryTest() override {
    if (!other_.ended) other_.leave();
    loop_.poll();
  }

  // All of mini's requests are next's to answer: r1 is mini's, r2 and whatever else is next's.
  void publish() {
    auto mini = routing::deployment("mini", {{"pirate", "pirate@1"}}, limits_);
    auto next = routing::deployment("next", {{"pirate", "pirate@2"}}, next_limits_);
    mini.base_family = next.base_family = "family";
    mini.uid = uid_;
    mini.canary = {{"next", 1000}};
    mini.ladders = ladders_;
    mini.budget_tokens = mini_budget_;
    next.budget_tokens = next_budget_;
    routing::RouteSnapshot snapshot{.version = ++version_, .deployments = {mini}, .replicas = {}};
    snapshot.adapters = {{"pirate@1", "digest 1", "family", 0},
                         {"pirate@2", "digest 2", "family", 0}};
    snapshot.replicas.push_back(routing::replica("r1", "mini", mini_state_));
    snapshot.replicas.back().deployment_uid = uid_;
    if (!has_next_adapter_) next.adapters = {};
    if (!has_mini_) snapshot = {.version = version_, .deployments = {}, .replicas = {}};
    if (has_next_) snapshot.deployments.push_back(next);
    for (const auto& id : next_replicas_) {
      snapshot.replicas.push_back(
          routing::replica(id, "next", routing::ReplicaState::kReady, {"pirate@2"}));
    }
    routes_.replace(snapshot);
  }
  void answer(size_t i) {
    call(i).content_type = "application/json";
    call(i).chunk("{}");
    call(i).finish();
    loop_.poll();
  }
  void fail(size_t i, unsigned status) {
    call(i).fail(status, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
    loop_.poll();
  }
  bool metric(const std::string& sample) {
    return http::metrics_page(metrics_, {}).find("penstock_gateway_" + sample + "\n") !=
           std::string::npos;
  }
  admission::UsageCounts used(const std::string& deployment) {
    for (const auto& row : usage_.totals()) {
      if (row.key.deployment == deployment) return row.counts;
    }
    return {};
  }

  std::uint64_t version_ = 0;
  std::string uid_;
  bool has_mini_ = true;
  bool has_next_ = true;
  bool has_next_adapter_ = true;
  routing::ReplicaState mini_state_ = routing::ReplicaState::kReady;
  routing::Limits next_limits_;
  std::vector<std::string> next_replicas_ = {"r2"};
  std::vector<routing::Ladder> ladders_;
  std::uint64_t mini_budget_ = 0;  // tokens
  std::uint64_t next_budget_ = 0;
  FakeReply other_;
};

TEST_F(CanaryTest, CountsAsFailedWhereItFailedAndAsAnsweredWhereItWasAnswered) {
  ask(kUnary);
  v1::CallEvent event;
  event.mutable_failed()->mutable_error()->set_status(500);
  event.mutable_failed()->mutable_error()->set_code("engine_error");
  event.mutable_failed()->mutable_usage()->set_prompt_tokens(7);
  call(0).put(event);
  call(0).call->news().raise();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
  EXPECT_EQ(reply_.header("x-penstock-degraded"), "") << "it is what was asked for";
  EXPECT_TRUE(metric(R"(requests_total{deployment="next",outcome="failed",code="500"} 1)"));
  EXPECT_TRUE(metric(R"(requests_total{deployment="mini",outcome="succeeded",code="200"} 1)"));
  EXPECT_TRUE(metric(R"(attempts_total{deployment="next"} 1)"));
  EXPECT_TRUE(metric(R"(attempts_total{deployment="mini"} 1)"));
  EXPECT_TRUE(metric(R"(in_flight{deployment="next"} 0)"));
  EXPECT_TRUE(metric(R"(in_flight{deployment="mini"} 0)"));
  EXPECT_EQ(used("next").prompt_tokens, 7U);
  EXPECT_EQ(used("next").requests, 0U);
  EXPECT_EQ(used("mini").prompt_tokens, 3U);
  EXPECT_EQ(used("mini").requests, 1U);
  EXPECT_EQ(settled_lines(), 1U);
  EXPECT_NE(log_text_.find(R"("deployment":"mini")"), std::string::npos) << log_text_;
  EXPECT_NE(log_text_.find(R"("left":"next=engine_error")"), std::string::npos) << log_text_;
}

TEST_F(CanaryTest, IsANewcomerToTheDeploymentThatWasAsked) {
  limits_.max_ongoing = 1;
  limits_.max_queued = 0;
  next_replicas_ = {};
  publish();
  ask_as(other_, kUnary);  // takes mini's place
  ASSERT_EQ(call(0).replica, "r1");
  next_replicas_ = {"r2"};
  publish();
  ask(kUnary);
  ASSERT_EQ(call(1).replica, "r2");
  call(1).lose(Source::kLost);
  loop_.poll();
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.status, 429U);
  EXPECT_EQ(reply_.header("x-penstock-drop-reason"), "queue_full");
  EXPECT_EQ(routes_.of("mini").standing().queued, 0U);
  EXPECT_TRUE(metric(R"(requests_total{deployment="mini",outcome="rejected",code="429"} 1)"));
}

TEST_F(CanaryTest, GoesToTheOneThatWasAskedWhereItsOnlyReplicaAnswersBadly) {
  for (const unsigned status : {500U, 503U}) {
    upstream_.calls.clear();
    done_ = false;
    ask(kUnary);
    ASSERT_EQ(call(0).replica, "r2");
    fail(0, status);
    ASSERT_EQ(upstream_.calls.size(), 2U);
    ASSERT_EQ(call(1).replica, "r1");
    answer(1);
    EXPECT_EQ(reply_.status, 200U);
  }
}

TEST_F(CanaryTest, IsTriedAtItsOtherReplicaFirst) {
  next_replicas_ = {"r2", "r3"};
  publish();
  ask(kUnary);
  fail(0, 500);
  EXPECT_NE(call(1).replica, "r1");
  fail(1, 500);
  EXPECT_EQ(call(2).replica, "r1");
  answer(2);
  EXPECT_TRUE(metric(R"(requests_total{deployment="next",outcome="failed",code="500"} 1)"));
  EXPECT_TRUE(metric(R"(attempts_total{deployment="next"} 2)"));
}

TEST_F(CanaryTest, IsAskedAtHomeForTheVersionThatStandsForTheNameThere) {
  ask(R"({"model":"mini:pirate","messages":[{}]})");
  ASSERT_EQ(call(0).request.adapter(), "pirate@2");
  call(0).lose(Source::kUnreachable);
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  EXPECT_EQ(call(1).request.adapter(), "pirate@1");
  EXPECT_EQ(call(1).request.adapter_digest(), "digest 1");
  answer(1);
  EXPECT_EQ(reply_.header("x-penstock-adapter-version"), "pirate@1");
}

TEST_F(CanaryTest, HasTheFirstEventDeadlineOfWhereItIs) {
  limits_.first_event_deadline = seconds(20);
  next_limits_.first_event_deadline = seconds(5);
  publish();
  ask(kUnary);
  pass(seconds(6));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  pass(seconds(15));
  EXPECT_FALSE(done_);
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(CanaryTest, GoesHomeWhereACanaryThatItWaitsForIsDeleted) {
  next_limits_.max_ongoing = 1;
  publish();
  ask_as(other_, kUnary);
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  has_next_ = false;
  next_replicas_ = {};
  publish();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  answer(1);
}

TEST_F(CanaryTest, StaysAwayFromOtherEnginesWithWhatOneDiedOf) {
  ask(kUnary);
  call(0).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_EQ(reply_.header("x-penstock-backend"), "next");
}

TEST_F(CanaryTest, GoesDownTheLadderOnceTheOneThatWasAskedCannotEither) {
  ladders_ = {{"", {fallback("next")}}};
  publish();
  ask(kUnary);
  fail(0, 500);
  fail(1, 500);
  EXPECT_EQ(upstream_.calls.size(), 2U) << "no deployment is asked twice";
  EXPECT_EQ(reply_.status, 500U);
  EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
  EXPECT_TRUE(metric(R"(requests_total{deployment="next",outcome="failed",code="500"} 1)"));
  EXPECT_TRUE(metric(R"(requests_total{deployment="mini",outcome="failed",code="500"} 1)"));
}

TEST_F(CanaryTest, WaitsOnWhereItsNameIsMadeAnew) {
  next_replicas_ = {};
  limits_.max_ongoing = 1;
  uid_ = "first";
  publish();
  ask_as(other_, kUnary);
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  uid_ = "second";
  publish();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
}

// Whatever happens to canaries, those that were asked and their ladders.
class AnyWay : public CanaryTest, public testing::WithParamInterface<unsigned> {
 protected:
  size_t below(size_t bound) { return random_() % bound; }
  void change() {
    has_mini_ = upstream_.calls.empty() || below(8) != 0;
    has_next_ = below(3) != 0;
    has_next_adapter_ = below(3) != 0;
    next_replicas_ = {};
    for (size_t i = 0; has_next_ && i < below(3); ++i) {
      next_replicas_.push_back("n" + std::to_string(i));
    }
    uid_ = below(4) == 0 ? "second" : "";
    mini_state_ = below(4) == 0 ? routing::ReplicaState::kStarting : routing::ReplicaState::kReady;
    ladders_ = {};
    if (below(2) == 0) ladders_ = {{"", {kTrim, fallback("next")}}};
    mini_budget_ = any_budget();
    next_budget_ = any_budget();
    limits_.max_queued = below(2) == 0 ? 0 : 10;
    limits_.queue_deadline = next_limits_.queue_deadline = seconds(30);
    limits_.first_event_deadline = next_limits_.first_event_deadline = seconds(60);
    publish();
  }
  // None, one that has room for nothing, or for all.
  std::uint64_t any_budget() { return std::array<std::uint64_t, 3>{0, 1, 1'000'000}[below(3)]; }
  void play(FakeUpstream::Opened& opened) {
    switch (below(7)) {
      case 0:
        return opened.lose(Source::kUnreachable);
      case 1:
        return opened.lose(Source::kLost);
      case 2:
        return opened.fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
      case 3:
        return opened.fail(400, "context_length_exceeded", v1::FAULT_CLIENT, v1::RETRY_NEVER);
      case 4:
        return pass(seconds(61));
      case 5:
        return opened.fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
      default:
        opened.content_type = "application/json";
        opened.chunk("{}");
        opened.finish();
    }
  }
  uint64_t sum(const std::string& family, const std::string& deployment) {
    uint64_t sum = 0;
    const std::string page = http::metrics_page(metrics_, {});
    const std::string begin = "penstock_gateway_" + family + "{deployment=\"" + deployment + "\"";
    for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
      sum += std::stoull(page.substr(page.find("} ", at) + 2));
    }
    return sum;
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(AnyWay, LeavesSumsThatAreRightAndNothingElse) {
  change();
  const std::string model = below(2) == 0 ? "mini" : "mini:pirate";
  ask(R"({"model":")" + model + R"(","messages":[{}]})");
  std::map<std::string, uint64_t> sent;
  std::map<std::string, int> visits;
  std::string before;
  for (size_t i = 0; i < upstream_.calls.size(); ++i) {
    const std::string at = call(i).replica == "r1" ? "mini" : "next";
    ++sent[at];
    if (at != before) ++visits[at];
    before = at;
    if (below(4) == 0) change();
    if (call(i).call != nullptr) play(call(i));
    loop_.poll();
  }
  for (int i = 0; i < 3 && !done_; ++i) pass(seconds(61));
  ASSERT_TRUE(done_) << "a request that nobody has any more";
  EXPECT_EQ(settled_lines(), 1U);
  EXPECT_EQ(state_.in_flight, 0U);
  uint64_t settled = 0;
  for (const std::string at : {"mini", "next"}) {
    EXPECT_LE(visits[at], 1) << "no step is taken twice: " << at;
    EXPECT_EQ(sum("attempts_total", at), sent[at]) << at;
    EXPECT_EQ(sum("in_flight", at), 0U) << at;
    EXPECT_GE(sum("requests_total", at), std::min<uint64_t>(sent[at], 1)) << at;
    EXPECT_LE(sum("requests_total", at), 1U) << at;
    settled += sum("requests_total", at);
  }
  EXPECT_GE(settled, 1U);
  for (const auto& hold : usage_.day().holds()) {
    EXPECT_FALSE(hold.reserved) << hold.of.deployment;
    EXPECT_LE(hold.used.tokens, used(hold.of.deployment).tokens()) << hold.of.deployment;
  }
  for (const auto& [key, dispatcher] : *routes_.dispatchers().current()) {
    EXPECT_EQ(dispatcher->standing().queued, 0U) << key;
    for (const auto& replica : dispatcher->replicas()) EXPECT_EQ(replica->in_flight(), 0U) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyWay, testing::Range(0U, 400U));

}  // namespace
}  // namespace penstock::proxy
