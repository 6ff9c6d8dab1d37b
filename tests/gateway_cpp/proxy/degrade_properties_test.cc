// Any ladder, any state of those that it names, and whatever their replicas do: a request ends
// once, nobody is asked twice, and nothing of it stays anywhere.
#include <map>
#include <random>
#include <set>

#include "degrade_fixture.h"
#include "http/metrics_page.h"

namespace penstock::proxy {
namespace {

class AnyLadder : public RequestFlowTest, public testing::WithParamInterface<unsigned> {
 protected:
  size_t below(size_t bound) { return random_() % bound; }
  bool once_in(size_t bound) { return below(bound) == 0; }

  // mini, a and b have engines; c and d have none.
  void publish() {
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {}, .replicas = {}};
    for (const std::string name : {"mini", "a", "b", "c", "d"}) {
      auto deployment = routing::deployment(name);
      deployment.managed = name == "c" || name == "d";
      deployment.trims = once_in(6);
      deployment.without_tools = once_in(4);
      deployment.budget_used_up = once_in(5);
      deployment.limits.first_event_deadline = seconds(1 + below(40));
      deployment.limits.max_completion_tokens = once_in(5) ? 1 : 0;
      if (name == "mini") deployment.ladders = {{"", rungs()}, {"budget", rungs()}};
      const bool starts = once_in(5);
      snapshot.deployments.push_back(deployment);
      snapshot.replicas.push_back(routing::replica(
          "at " + name, name,
          starts ? routing::ReplicaState::kStarting : routing::ReplicaState::kReady));
    }
    routes_.replace(snapshot);
  }
  std::vector<routing::Rung> rungs() {
    std::vector<routing::Rung> rungs;
    for (size_t i = 0; i < below(7); ++i) {
      const auto which = below(10);
      rungs.push_back(which < 2 ? kTrim : fallback(std::string(1, "abcde"[which % 5])));
    }
    return rungs;
  }
  // Something happens to the call: it ends, or its time goes by.
  void play(FakeUpstream::Opened& opened) {
    switch (below(8)) {
      case 0:
        return opened.lose(Source::kUnreachable);
      case 1:
        lethal_ += 1;
        return opened.lose(Source::kLost);
      case 2:
        if (!is_managed(opened.replica)) lethal_ = 2;
        return opened.fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
      case 3:
        return opened.fail(400, "context_length_exceeded", v1::FAULT_CLIENT, v1::RETRY_NEVER);
      case 4:
        return opened.fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
      case 5:
        return pass(seconds(41));
      default:
        break;
    }
    opened.content_type = "application/json";
    opened.facts.set_trimmed_messages(opened.request.trim() ? 1 : 0);
    opened.chunk("{}");
    opened.finish();
  }
  static bool is_managed(const std::string& replica) {
    return replica == "at c" || replica == "at d";
  }
  void expect_nothing_left() {
    EXPECT_EQ(state_.in_flight, 0U);
    EXPECT_EQ(settled_lines(), 1U);
    const std::string page = http::metrics_page(metrics_, {});
    for (const std::string name : {"mini", "a", "b", "c", "d"}) {
      EXPECT_EQ(routes_.replica(name, 0).in_flight(), 0U) << name;
      EXPECT_EQ(routes_.of(name).standing().queued, 0U) << name;
      const std::string gauge = "penstock_gateway_in_flight{deployment=\"" + name + "\"} ";
      const auto at = page.find(gauge);
      EXPECT_TRUE(at == std::string::npos || page[at + gauge.size()] == '0') << name;
    }
  }

  std::mt19937 random_{GetParam()};
  int lethal_ = 0;  // two: it goes to no engine
};

TEST_P(AnyLadder, EndsARequestOnce) {
  publish();
  config_.first_event_deadline = seconds(100);
  const std::string tools = once_in(2) ? R"("tools":[{}],)" : "";
  ask(R"({"model":"mini",)" + tools + R"("max_tokens":2,"messages":[{}]})");
  std::map<std::string, int> asked;
  for (size_t i = 0; i < upstream_.calls.size(); ++i) {
    FakeUpstream::Opened& opened = call(i);
    EXPECT_TRUE(lethal_ < 2 || is_managed(opened.replica)) << opened.replica;
    EXPECT_LE(++asked[opened.replica], opened.replica == "at mini" ? 2 : 1) << opened.replica;
    play(opened);
    loop_.poll();
  }
  ASSERT_TRUE(done_) << "a request that nobody has any more";
  const auto last = upstream_.calls.empty() ? std::string() : upstream_.calls.back()->replica;
  const std::string backend = reply_.header("x-penstock-backend");
  const bool is_degraded = !reply_.header("x-penstock-degraded").empty();
  if (reply_.status == 200) {
    EXPECT_EQ("at " + backend, last);
    const bool is_cut = !reply_.header("x-penstock-trimmed").empty();
    EXPECT_EQ(is_degraded, is_cut || backend != "mini");
  } else {
    EXPECT_FALSE(is_degraded);
    EXPECT_TRUE(backend.empty() || backend == "mini") << "the first refusal is mini's";
  }
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyLadder, testing::Range(0U, 400U));

}  // namespace
}  // namespace penstock::proxy
