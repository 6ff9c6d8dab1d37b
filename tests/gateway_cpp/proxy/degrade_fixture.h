// Deployments with ladders, for requests that go down them.
#pragma once

#include "flow_fixture.h"
#include "http/metrics_page.h"

namespace penstock::proxy {
using Kind = routing::Rung::Kind;

inline const routing::Rung kTrim{.kind = Kind::kTrim};

inline routing::Rung fallback(const std::string& deployment) {
  return {.kind = Kind::kFallback, .deployment = deployment};
}

class DegradeTest : public RequestFlowTest {
 protected:
  DegradeTest() { publish(); }
  ~DegradeTest() override {
    if (!other_.ended) other_.leave();
    loop_.poll();
  }

  // mini with r1, big with r2, canned with r3, which is managed.
  void publish() {
    auto mini = routing::deployment("mini", {}, limits_);
    auto big = routing::deployment("big", {}, big_limits_);
    auto canned = routing::deployment("canned");
    mini.ladders = {{"", rungs_}};
    mini.trims = mini_trims_;
    canned.managed = true;
    mini.budget_used_up = used_up_;
    mini.budget_resets_at = clock_.wall_now() + std::chrono::hours(1);
    routes_.replace({.version = ++version_,
                     .deployments = {mini, big, canned},
                     .replicas = {routing::replica("r1", "mini", mini_state_),
                                  routing::replica("r2", "big", big_state_),
                                  routing::replica("r3", "canned")}});
  }
  // A ladder for all reasons.
  void ladder(std::vector<routing::Rung> rungs) {
    rungs_ = std::move(rungs);
    publish();
  }
  // mini has one place, and another request has it.
  void occupy(std::uint32_t max_queued = 0) {
    limits_.max_ongoing = 1;
    limits_.max_queued = max_queued;
    publish();
    ask_as(other_, kUnary);
    ASSERT_EQ(upstream_.calls.size(), 1U);
  }
  void answer(size_t i, const std::string& body = "{}") {
    call(i).content_type = "application/json";
    call(i).chunk(body);
    call(i).finish();
    loop_.poll();
  }
  void ask_never(const std::string& body) {
    Ask asked;
    asked.request_id = "req_1";
    asked.endpoint = endpoint_;
    asked.body = body;
    asked.received = clock_.steady_now();
    asked.caller = caller();
    asked.may_degrade = false;
    loop_.spawn(run(std::move(asked)));
    loop_.poll();
  }
  bool metric(const std::string& sample) {
    return http::metrics_page(metrics_, {}).find(sample + "\n") != std::string::npos;
  }
  uint32_t in_flight_at(const std::string& deployment) {
    return routes_.replica(deployment, 0).in_flight();
  }
  admission::UsageCounts used(const std::string& deployment) {
    for (const auto& row : usage_.totals()) {
      if (row.key.deployment == deployment) return row.counts;
    }
    return {};
  }
  void too_long(size_t i) {
    call(i).fail(400, "context_length_exceeded", v1::FAULT_CLIENT, v1::RETRY_NEVER);
    loop_.poll();
  }

  std::uint64_t version_ = 0;
  std::vector<routing::Rung> rungs_ = {fallback("big"), fallback("canned")};
  routing::Limits big_limits_;
  bool mini_trims_ = false;
  bool used_up_ = false;
  routing::ReplicaState mini_state_ = routing::ReplicaState::kReady;
  routing::ReplicaState big_state_ = routing::ReplicaState::kReady;
  FakeReply other_;
};

}  // namespace penstock::proxy
