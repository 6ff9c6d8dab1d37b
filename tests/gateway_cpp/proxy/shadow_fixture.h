// A deployment whose requests are repeated on another one.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "flow_fixture.h"

namespace penstock::proxy {

class ShadowTest : public RequestFlowTest {
 protected:
  ShadowTest() {
    request_id_ = "req_4";  // by which the lot sends the candidate first
    publish();
  }
  ~ShadowTest() override {
    if (!done_) reply_.leave();
    if (!other_.ended) other_.leave();
    shadows_.stop();
    loop_.poll();
  }

  // mini with r1, next with r2.
  void publish() {
    auto mini = routing::deployment("mini", {{"pirate", "pirate@1"}}, limits_);
    mini.shadows = {rule_};
    next_.shadows = {};
    routing::RouteSnapshot snapshot{
        .version = ++version_, .deployments = {mini}, .replicas = {routing::replica("r1", "mini")}};
    if (has_next_) snapshot.deployments.push_back(next_);
    if (has_next_) snapshot.replicas.push_back(routing::replica("r2", "next", next_state_));
    routes_.replace(snapshot);
  }
  void answer(size_t i, const std::string& body) {
    call(i).content_type = "application/json";
    call(i).chunk(body);
    call(i).finish();
    loop_.poll();
  }
  void stream(size_t i, const std::string& text) {
    call(i).chunk("data: " + text + "\n\n");
    call(i).chunk("data: [DONE]\n\n");
    call(i).finish();
    loop_.poll();
  }
  const v1::ShadowPair& pair(size_t i = 0) { return pairs_.pairs.at(i); }
  std::vector<std::string> marks(size_t i = 0) {
    return {pair(i).marks().begin(), pair(i).marks().end()};
  }
  std::uint64_t count(admission::ShadowOutcome outcome) {
    const auto rows = shadow_book_.rows();
    return rows.empty() ? 0 : rows[0].counts[static_cast<size_t>(outcome)];
  }
  uint32_t in_flight_at(const std::string& deployment) {
    return routes_.replica(deployment, 0).in_flight();
  }

  std::uint64_t version_ = 1;
  routing::ShadowRule rule_{.uid = "u1",
                            .name = "next",
                            .candidate = "next",
                            .share_permille = 1000,
                            .max_concurrent = 4,
                            .cache_salt = "salt"};
  routing::DeploymentRoute next_ = routing::deployment("next");
  routing::ReplicaState next_state_ = routing::ReplicaState::kReady;
  bool has_next_ = true;
  FakeReply other_;
};

}  // namespace penstock::proxy
