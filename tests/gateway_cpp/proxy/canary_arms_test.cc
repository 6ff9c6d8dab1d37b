// Canaries that are judged, be their candidate a deployment, a version of an adapter or a revision:
// what breaks there before its first event is the stable arm's to answer, and its client sees no
// more of it.
#include <functional>
#include <map>

#include "degrade_fixture.h"

namespace penstock::proxy {
namespace {

enum class Candidate { kDeployment, kVersion, kRevision };

class JudgedCanary : public RequestFlowTest {
 protected:
  // r1 is the stable arm's, r2 the candidate's; versions share r1.
  void publish(Candidate kind) {
    kind_ = kind;
    auto mini = routing::deployment("mini", {}, limits_);
    mini.base_family = "family";
    mini.keeps_sessions = keeps_sessions_;
    mini.ladders = ladders_;
    routing::CanaryRule rule{.uid = "c1", .name = "try", .step = 1};
    routing::RouteSnapshot snapshot{.version = ++version_, .deployments = {}, .replicas = {}};
    snapshot.replicas = {routing::replica("r1", "mini"), routing::replica("r2", "mini")};
    snapshot.replicas[0].template_digest = "old";
    snapshot.replicas[1].template_digest = "new";
    snapshot.adapters = {{"pirate@1", "digest 1", "family", 0},
                         {"pirate@2", "digest 2", "family", 0}};
    switch (kind) {
      case Candidate::kDeployment:
        rule.candidate = "next";
        mini.canary = {{"next", permille_}};
        snapshot.replicas[1].deployment = "next";
        snapshot.deployments = {routing::deployment("next", {}, limits_)};
        break;
      case Candidate::kVersion:
        rule.alias = "pirate";
        rule.stable_adapter = "pirate@1";
        rule.candidate_adapter = "pirate@2";
        mini.adapters = {
            {"pirate", "pirate@1", {{"pirate@1", 1000 - permille_}, {"pirate@2", permille_}}}};
        snapshot.replicas.pop_back();
        break;
      case Candidate::kRevision:
        rule.candidate_digest = "new";
        mini.canary = {{"mini", permille_, "new"}};
        break;
    }
    if (!has_candidate_) snapshot.replicas.pop_back();
    mini.canary_rules = {rule};
    snapshot.deployments.push_back(mini);
    canaries_.follow(snapshot);
    routes_.replace(snapshot);
  }
  std::string model() const { return kind_ == Candidate::kVersion ? "mini:pirate" : "mini"; }
  std::string unary() const { return R"({"model":")" + model() + R"(","messages":[{}]})"; }
  std::string streamed() const {
    return R"({"model":")" + model() + R"(","stream":true,"messages":[{}]})";
  }
  bool is_candidates(size_t i) {
    return kind_ == Candidate::kVersion ? call(i).request.adapter() == "pirate@2"
                                        : call(i).replica == "r2";
  }
  void answer(size_t i, bool streamed = false) {
    if (!streamed) call(i).content_type = "application/json";
    call(i).chunk(streamed ? kEnd : "{}");
    call(i).finish();
    loop_.poll();
  }
  void fail(size_t i, unsigned status, v1::Retry retry = v1::RETRY_BEFORE_FIRST_TOKEN) {
    call(i).fail(status, "engine_error", v1::FAULT_UPSTREAM, retry);
    loop_.poll();
  }
  void refuse(size_t i, const std::string& code) {
    call(i).fail(400, code, v1::FAULT_CLIENT, v1::RETRY_NEVER);
    loop_.poll();
  }
  // What left it, in the log's words.
  std::string candidate() const {
    if (kind_ == Candidate::kDeployment) return "next";
    return kind_ == Candidate::kVersion ? "mini:pirate@2" : "mini@new";
  }
  void expect_left(const std::string& why) {
    log_text_ += log_.text();
    EXPECT_NE(log_text_.find(R"("left":")" + candidate() + "=" + why + "\""), std::string::npos)
        << log_text_;
  }
  admission::CanaryRow counts() { return canaries_.rows().at(0); }
  void expect_nothing_is_left() {
    for (const auto& [key, dispatcher] : *routes_.dispatchers().current()) {
      EXPECT_EQ(dispatcher->standing().queued, 0U) << key;
      for (const auto& replica : dispatcher->replicas()) EXPECT_EQ(replica->in_flight(), 0U) << key;
    }
    EXPECT_EQ(state_.in_flight, 0U);
  }

  Candidate kind_ = Candidate::kDeployment;
  std::uint64_t version_ = 0;
  std::uint32_t permille_ = 1000;
  bool keeps_sessions_ = false;
  bool has_candidate_ = true;
  std::vector<routing::Ladder> ladders_;
};

class CanaryArms : public JudgedCanary, public testing::WithParamInterface<Candidate> {
 protected:
  CanaryArms() { publish(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, CanaryArms,
                         testing::Values(Candidate::kDeployment, Candidate::kVersion,
                                         Candidate::kRevision));

// One way for a candidate's call to fail before its first event, and why, as the log has it.
struct Broken {
  std::string why;
  std::function<void(FakeUpstream::Opened&)> play;
};
const std::vector<Broken> kBroken = {
    {"engine_error",
     [](auto& call) {
       call.fail(500, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
     }},
    {"engine_error",
     [](auto& call) { call.fail(503, "engine_error", v1::FAULT_UPSTREAM, v1::RETRY_NEVER); }},
    {"adapter_load_failed",
     [](auto& call) {
       call.fail(503, "adapter_load_failed", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
     }},
    {"context_length_exceeded",
     [](auto& call) {
       call.fail(400, "context_length_exceeded", v1::FAULT_CLIENT, v1::RETRY_NEVER);
     }},
    {"unsupported_parameter",
     [](auto& call) {
       call.fail(400, "unsupported_parameter", v1::FAULT_CLIENT, v1::RETRY_NEVER);
     }},
    {"model_not_found",
     [](auto& call) { call.fail(404, "model_not_found", v1::FAULT_CLIENT, v1::RETRY_NEVER); }},
    {"upstream_error", [](auto& call) { call.lose(Source::kLost); }},
    {"no_ready_replica", [](auto& call) { call.lose(Source::kUnreachable); }},
    {"upstream_error", [](auto& call) { call.finish({"error"}); }},
};

TEST_P(CanaryArms, WhatFailsBeforeItsFirstEventIsAnsweredByTheStableArm) {
  std::uint64_t asked = 0;
  for (const bool streams : {false, true}) {
    for (const Broken& broken : kBroken) {
      upstream_.calls.clear();
      done_ = false;
      for (const auto& [key, dispatcher] : *routes_.dispatchers().current()) {
        for (const auto& replica : dispatcher->replicas()) dispatcher->note_back(*replica);
      }
      pass(seconds(40));  // of no doubt is anything left
      reply_.text.clear();
      ask(streams ? streamed() : unary());
      ASSERT_EQ(upstream_.calls.size(), 1U) << broken.why;
      EXPECT_TRUE(is_candidates(0));
      broken.play(call(0));
      loop_.poll();
      ASSERT_EQ(upstream_.calls.size(), 2U) << broken.why << streams;
      EXPECT_FALSE(is_candidates(1));
      EXPECT_EQ(call(1).request.model(), model());
      answer(1, streams);
      EXPECT_TRUE(done_);
      EXPECT_EQ(reply_.status, 200U);
      EXPECT_EQ(reply_.text, streams ? kEnd : "{}");
      EXPECT_EQ(reply_.header("x-penstock-backend"), "mini");
      EXPECT_EQ(reply_.header("x-penstock-replica"), "r1");
      EXPECT_EQ(reply_.header("x-penstock-degraded"), "");
      EXPECT_EQ(reply_.header("x-penstock-adapter-version"),
                GetParam() == Candidate::kVersion ? "pirate@1" : "");
      expect_left(broken.why);
      log_text_.clear();
      EXPECT_EQ(counts().candidate.saved, ++asked) << broken.why;
      expect_nothing_is_left();
    }
  }
  EXPECT_EQ(counts().stable.requests, 0U);
}

TEST_P(CanaryArms, ACandidateThatHangsIsGivenUpInTimeForTheStableArm) {
  limits_.first_event_deadline = seconds(5);
  publish(GetParam());
  ask(streamed());
  call(0).facts.set_prompt_tokens(3);
  pass(seconds(6));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_FALSE(is_candidates(1));
  answer(1, true);
  EXPECT_EQ(reply_.text, kEnd);
}

TEST_P(CanaryArms, AHeadAloneIsNoAnswerYet) {
  ask(streamed());
  v1::CallEvent head;
  head.mutable_head()->set_status(200);
  head.mutable_head()->set_content_type("text/event-stream");
  call(0).put(head);
  call(0).call->news().raise();
  loop_.poll();
  EXPECT_FALSE(reply_.streamed);
  fail(0, 500);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  answer(1, true);
  EXPECT_EQ(reply_.text, kEnd);
}

TEST_P(CanaryArms, WhatBreaksAfterItsFirstEventBreaksInBandAndIsBad) {
  ask(streamed());
  call(0).chunk("data: {}\n\n");
  loop_.poll();
  fail(0, 500);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_NE(reply_.text.find("engine_error"), std::string::npos) << reply_.text;
  EXPECT_EQ(counts().candidate.bad_sessions, 1U);
  EXPECT_EQ(counts().candidate.saved, 0U);
}

TEST_P(CanaryArms, WhatBothRefuseIsTheClientsAndNobodysFault) {
  ask(unary());
  refuse(0, "only_here");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  refuse(1, "everywhere");
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_NE(reply_.text.find("everywhere"), std::string::npos) << reply_.text;
  EXPECT_EQ(counts().candidate.refused, 1U);
  EXPECT_EQ(counts().candidate.bad_sessions, 0U);
}

TEST_P(CanaryArms, NoArmIsAskedTwice) {
  ask(unary());
  fail(0, 500, v1::RETRY_NEVER);
  fail(1, 500, v1::RETRY_NEVER);
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.status, 500U);
  EXPECT_EQ(counts().candidate.bad_sessions, 1U);
  expect_nothing_is_left();
}

TEST_P(CanaryArms, ARungComesAfterTheStableArm) {
  ladders_ = {{"", {kTrim}}};
  publish(GetParam());
  ask(unary());
  refuse(0, "context_length_exceeded");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_FALSE(is_candidates(1));
  EXPECT_FALSE(call(1).request.trim());
  refuse(1, "context_length_exceeded");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_FALSE(is_candidates(2));
  EXPECT_TRUE(call(2).request.trim());
  answer(2);
  EXPECT_EQ(reply_.status, 200U);
}

TEST_P(CanaryArms, WhatAnEngineDiedOfGoesNowhereElse) {
  ask(unary());
  call(0).fail(503, "engine_dead", v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 503U);
}

TEST_P(CanaryArms, TheStableArmIsNeverTheCandidatesToSave) {
  permille_ = 0;
  publish(GetParam());
  ask(unary());
  EXPECT_FALSE(is_candidates(0));
  refuse(0, "not_here");
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_EQ(counts().stable.refused, 1U);
}

TEST_P(CanaryArms, ARetriedBodyAndASessionKeepTheirArm) {
  permille_ = 500;
  publish(GetParam());
  std::map<std::string, std::map<bool, int>> arms;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      const std::string number = std::to_string(i);
      request_id_ = "req_" + number + "_" + std::to_string(round);
      const std::string of_session = R"({"model":")" + model() + R"(","session_id":"s)" + number +
                                     R"(","n":)" + std::to_string(round + 1) +
                                     R"(,"messages":[{}]})";
      const std::string without =
          R"({"model":")" + model() + R"(","seed":)" + number + R"(,"messages":[{}]})";
      for (const auto& [name, body] : {std::pair("s" + number, of_session), {number, without}}) {
        upstream_.calls.clear();
        ask(body);
        ++arms[name][is_candidates(0)];
        answer(0);
      }
    }
  }
  int candidates = 0;
  for (auto& [name, found] : arms) {
    EXPECT_EQ(found.size(), 1U) << name;
    candidates += found.begin()->first ? 1 : 0;
  }
  EXPECT_GT(candidates, 30);
  EXPECT_LT(candidates, 90);
  EXPECT_EQ(counts().candidate.sessions, static_cast<uint64_t>(candidates));
  EXPECT_EQ(counts().stable.sessions, 120U - static_cast<uint64_t>(candidates));
}

class OfDeployments : public JudgedCanary {};

TEST_F(OfDeployments, OneThatIsNotThereIsSavedAtOnce) {
  has_candidate_ = false;
  publish(Candidate::kDeployment);
  ask(unary());
  EXPECT_EQ(call(0).replica, "r1");
  answer(0);
  expect_left("no_replica");
  EXPECT_EQ(counts().candidate.saved, 1U);
}

class OfRevisions : public JudgedCanary {
 protected:
  void ask_of(const std::string& session) {
    upstream_.calls.clear();
    done_ = false;
    ask(R"({"model":"mini","session_id":")" + session + R"(","messages":[{}]})");
  }
};

TEST_F(OfRevisions, OneThatIsNotThereIsSavedAtOnce) {
  has_candidate_ = false;
  publish(Candidate::kRevision);
  ask(unary());
  EXPECT_EQ(call(0).replica, "r1");
  answer(0);
  expect_left("no_ready_replica");
  EXPECT_EQ(counts().candidate.saved, 1U);
}

TEST_F(OfRevisions, WhoWaitsForAPlaceInVainIsSavedByTheOthers) {
  limits_.max_ongoing = 1;
  limits_.wait_budget = seconds(2);
  publish(Candidate::kRevision);
  FakeReply other;
  ask_as(other, unary());
  ASSERT_EQ(call(0).replica, "r2");
  ask(R"({"model":"mini","seed":1,"messages":[{}]})");
  EXPECT_EQ(upstream_.calls.size(), 1U);
  pass(seconds(3));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(counts().candidate.saved, 1U);
  answer(0);
}

TEST_F(OfRevisions, ASessionThatIsKeptIsOfTheArmThatItIsAt) {
  keeps_sessions_ = true;
  permille_ = 0;
  publish(Candidate::kRevision);
  ask_of("a");
  ASSERT_EQ(call(0).replica, "r1");
  answer(0);
  permille_ = 1000;
  publish(Candidate::kRevision);
  ask_of("a");
  EXPECT_EQ(call(0).replica, "r1");
  answer(0);
  EXPECT_EQ(counts().stable.requests, 2U);
  ask_of("b");
  EXPECT_EQ(call(0).replica, "r2");
  answer(0);
  EXPECT_EQ(counts().candidate.requests, 1U);
  permille_ = 0;
  publish(Candidate::kRevision);
  ask_of("b");
  EXPECT_EQ(call(0).replica, "r2");
  refuse(0, "not_here");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
  answer(1);
  EXPECT_EQ(counts().candidate.saved, 1U);
}

TEST_F(OfRevisions, WithoutOthersACandidatesErrorIsTheClients) {
  publish(Candidate::kRevision);
  ask(unary());
  routes_.of("mini").note_failure(routes_.replica("mini", 0), routing::Failure::kLost);
  refuse(0, "not_here");
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 400U);
}

}  // namespace
}  // namespace penstock::proxy
