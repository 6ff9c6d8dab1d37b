// What is noted of an answer that went on: by its canary's arm, for its shadow, of its costs.
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

class ResumeBooksTest : public ResumeTest {
 protected:
  ~ResumeBooksTest() override {
    shadows_.stop();
    loop_.poll();
  }

  // Two replicas of mini, both of the candidate's revision where it is judged.
  void publish() {
    auto mini = routing::deployment("mini", {}, limits_);
    mini.selection_policy = "round_robin";
    if (is_judged_) {
      mini.canary = {{"mini", 1000, "new"}};
      mini.canary_rules = {{.uid = "c1", .name = "try", .step = 1, .candidate_digest = "new"}};
    }
    if (is_sampled_) mini.shadows = {shadow_};
    routing::RouteSnapshot snapshot{.version = 2, .deployments = {mini}, .replicas = {}};
    for (const auto* id : {"r1", "r2"}) {
      snapshot.replicas.push_back(routing::replica(id, "mini"));
      snapshot.replicas.back().template_digest = "new";
    }
    if (is_sampled_) {
      snapshot.deployments.push_back(routing::deployment("next"));
      snapshot.replicas.push_back(routing::replica("r3", "next"));
    }
    canaries_.follow(snapshot);
    routes_.replace(snapshot);
    report(0);
    report(1);
  }
  admission::CanaryCounts candidate() { return canaries_.rows().at(0).candidate; }
  uint64_t broken_streams() {
    return candidate().errors[static_cast<size_t>(admission::CanaryFault::kBrokenStream)];
  }
  // The answer breaks where it began and is whole in the end.
  void break_and_go_on(Source source = Source::kLost) {
    ask_and_hear(40);
    lose(0, source);
    say(1, event("b"));
    end(1, 41);
  }

  bool is_judged_ = false;
  bool is_sampled_ = false;
  const routing::ShadowRule shadow_{.uid = "u1",
                                    .name = "next",
                                    .candidate = "next",
                                    .share_permille = 1000,
                                    .max_concurrent = 4,
                                    .cache_salt = "salt"};
};

TEST_F(ResumeBooksTest, ACanarysArmIsToldThatItBroke) {
  is_judged_ = true;
  publish();
  break_and_go_on();
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(broken_streams(), 1U);
  EXPECT_EQ(candidate().bad_sessions, 1U);
}

TEST_F(ResumeBooksTest, ACanarysArmIsToldSoWhoeverLeavesThen) {
  is_judged_ = true;
  publish();
  ask_and_hear(40);
  lose(0);
  say(1, event("b"));
  reply_.leave();
  loop_.poll();
  EXPECT_EQ(broken_streams(), 1U);
}

TEST_F(ResumeBooksTest, AShadowIsComparedWithTheWholeAnswer) {
  is_sampled_ = true;
  publish();
  break_and_go_on();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 3U) << "the candidate is asked";
  head_.set_resumable(false);
  say(2, event("z"));
  end(2, 1);
  ASSERT_EQ(pairs_.pairs.size(), 1U);
  const v1::ShadowPair& pair = pairs_.pairs[0];
  EXPECT_EQ(pair.primary().body(), event("a") + event("b") + kEnd);
  EXPECT_EQ(pair.primary().usage().completion_tokens(), 41U);
  EXPECT_EQ(std::vector<std::string>(pair.marks().begin(), pair.marks().end()),
            std::vector<std::string>{"resumed"});
}

TEST_F(ResumeBooksTest, WhatTheEstimateLearnsIsTheWholeAnswer) {
  publish();
  const auto estimate = [this] {
    return routes_.of("mini").appraise(kStream.size(), std::nullopt, 1).estimate;
  };
  admission::TokenEstimator as_if_unbroken;
  as_if_unbroken.learn(kStream.size(), 7, 41, estimate());
  break_and_go_on();
  const auto expected = as_if_unbroken.estimate(kStream.size(), std::nullopt, 1);
  EXPECT_EQ(estimate().completion, expected.completion);
  EXPECT_EQ(estimate().prompt, expected.prompt);
}

TEST_F(ResumeBooksTest, AStreamThatBeganOnceMoreGoesOnAsAny) {
  publish();
  ask(kStream);
  v1::CallEvent said;
  auto& failed = *said.mutable_failed();
  failed.mutable_error()->set_status(503);
  failed.mutable_error()->set_code("engine_killed");
  failed.mutable_error()->set_fault(v1::FAULT_UPSTREAM);
  failed.mutable_usage()->set_prompt_tokens(7);
  failed.mutable_usage()->set_completion_tokens(30);
  deliver(0, said);
  say(1, event("a"), 10);
  pass(seconds(3));  // nothing speaks against the first any more
  report(0);
  lose(1);
  ASSERT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(call(2).request.resume().events(), 1U);
  say(2, event("b"), 40);
  end(2, 50);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(used().completion_tokens, 50U);
}

TEST_F(ResumeBooksTest, AUnaryAnswerThatBeginsOnceMoreIsPaidForOnce) {
  publish();
  ask(kUnary);
  v1::CallEvent said;
  auto& failed = *said.mutable_failed();
  failed.mutable_error()->set_status(503);
  failed.mutable_error()->set_code("engine_killed");
  failed.mutable_error()->set_fault(v1::FAULT_UPSTREAM);
  failed.mutable_usage()->set_prompt_tokens(7);
  failed.mutable_usage()->set_completion_tokens(30);
  deliver(0, said);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  end(1, 41);
  EXPECT_EQ(used().prompt_tokens, 7U);
  EXPECT_EQ(used().completion_tokens, 41U);
}

}  // namespace
}  // namespace penstock::proxy
