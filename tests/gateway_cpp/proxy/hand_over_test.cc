// Answers that leave their replica while it lives: it is to go away, or makes no progress.
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

class HandOverTest : public ResumeTest {
 protected:
  void serve_again() {
    auto deployment = routing::deployment("mini", {}, limits_);
    deployment.selection_policy = "round_robin";
    routing::RouteSnapshot snapshot{.version = 2, .deployments = {deployment}, .replicas = {}};
    for (const std::string id : {"r1", "r2", "r3"}) {
      snapshot.replicas.push_back(routing::replica(id, "mini"));
    }
    if (drains_) {
      snapshot.replicas[0].state = routing::ReplicaState::kDraining;
      snapshot.replicas[0].hand_over_at = hand_over_at_;
    }
    routes_.replace(snapshot);
    pass(milliseconds(0));
  }
  // r1, whose streams are to be gone by then.
  void drain(milliseconds in = milliseconds(0)) {
    drains_ = true;
    hand_over_at_ = clock_.wall_now() + in;
    serve_again();
  }
  void be_full(bool full = true) {
    for (const size_t i : {1, 2}) tell(i, {.kv_usage = full ? 0.99F : 0.0F});
  }
  void tell(size_t i, routing::LoadReport load) {
    load.config_hash = "c1";
    load.resumes = true;
    routes_.of("mini").report(routes_.replica("mini", i), load);
    loop_.poll();
  }
  // All run, and only the others get on.
  void stop_one() {
    limits_.progress_deadline = seconds(2);
    serve_again();
    for (const size_t i : {0, 1, 2}) tell(i, {.running = 1, .tokens = 1});
    pass(seconds(1));
    for (const size_t i : {1, 2}) tell(i, {.running = 1, .tokens = 2});
    pass(seconds(1));
  }
  uint32_t moving() { return routes_.of("mini").standing().moving; }

 private:
  bool drains_ = false;
  base::WallTime hand_over_at_{};
};

TEST_F(HandOverTest, ItRunsOnUntilItHasAPlaceElsewhereAndNothingIsLostOrTwice) {
  ask_and_hear();
  be_full();
  drain();
  EXPECT_EQ(moving(), 1U);
  say(0, event("b"));
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_FALSE(call(0).cancelled);
  be_full(false);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  EXPECT_NE(call(1).replica, "r1");
  EXPECT_EQ(call(1).request.resume().events(), 2U);
  EXPECT_EQ(call(1).request.resume().groups_size(), 2);
  say(1, event("c"));
  end(1, 42);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c") + kEnd);
  EXPECT_EQ(resumes(base::ResumeReason::kHandOver, base::ResumeOutcome::kResumed), 1U);
  EXPECT_EQ(moving(), 0U);
}

TEST_F(HandOverTest, TheClockAloneBringsItsTime) {
  ask_and_hear();
  drain(seconds(3));
  pass(seconds(2));
  EXPECT_EQ(upstream_.calls.size(), 1U);
  pass(seconds(1));
  EXPECT_EQ(upstream_.calls.size(), 2U);
}

TEST_F(HandOverTest, OneThatBeginsMeanwhileGoesAsItBegins) {
  ask(kStream);
  drain();
  say(0, event("a"), 40);
  EXPECT_EQ(upstream_.calls.size(), 2U);
}

TEST_F(HandOverTest, WhatItsReplicaMadeBeyondItNobodyPaysFor) {
  ask_and_hear();
  call(0).keeps_cancelled = true;
  drain();
  say(1, event("b"));
  end(1, 41);
  call(0).acknowledge(7, 60);
  EXPECT_EQ(used().prompt_tokens, 7U);
  EXPECT_EQ(used().completion_tokens, 41U);
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(HandOverTest, WithoutAnEqualItStaysToItsEnd) {
  ask_and_hear();
  for (const size_t i : {1, 2}) report(i, "other");
  drain();
  say(0, event("b"));
  end(0, 41);
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(HandOverTest, WithoutAnEqualItsClientIsToldWhenItsReplicaIsDone) {
  ask_and_hear();
  for (const size_t i : {1, 2}) report(i, "other");
  drain();
  lose(0, Source::kEnded);
  EXPECT_FALSE(done_);
  pass(seconds(11));
  EXPECT_TRUE(done_);
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(moving(), 0U);
}

TEST_F(HandOverTest, AReplicaThatStaysAfterAllKeepsIt) {
  ask_and_hear();
  be_full();
  drain();
  EXPECT_EQ(moving(), 1U);
  drain(std::chrono::hours(1));
  EXPECT_EQ(moving(), 0U);
  be_full(false);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(HandOverTest, ASlowClientHoldsNoPlaceElsewhere) {
  ask_and_hear();
  be_full();
  drain();
  reply_.stop_reading();
  say(0, event("b"));
  EXPECT_EQ(moving(), 0U);
  be_full(false);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  reply_.read_on();
  loop_.poll();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).request.resume().events(), 2U);
}

TEST_F(HandOverTest, AClientThatLeavesMeanwhileTakesNoPlace) {
  ask_and_hear();
  be_full();
  drain();
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(moving(), 0U);
  be_full(false);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(HandOverTest, OneThatBreaksMeanwhileGoesBeforeThoseThatRunOn) {
  ask_and_hear();
  be_full();
  drain();
  lose(0);
  EXPECT_EQ(moving(), 0U);
  EXPECT_EQ(routes_.of("mini").standing().broken, 1U);
  be_full(false);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  say(1, event("b"));
  end(1, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
}

TEST_F(HandOverTest, OneWhoseReplicaMakesNoProgressGoesOnElsewhereAndWhatThatSaysLaterIsDropped) {
  ask_and_hear();
  stop_one();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  say(1, event("b"));
  end(1, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(resumes(base::ResumeReason::kHang, base::ResumeOutcome::kResumed), 1U);
}

TEST_F(HandOverTest, WhereNoneIsEqualItWaitsForItsReplicaToGetOn) {
  ask_and_hear();
  for (const size_t i : {1, 2}) report(i, "other");
  limits_.progress_deadline = seconds(2);
  serve_again();
  tell(0, {.running = 1, .tokens = 1});
  pass(seconds(2));
  EXPECT_EQ(routes_.of("mini").standing().broken, 1U) << "it hurries";
  tell(0, {.running = 1, .tokens = 2});
  pass(milliseconds(50));
  EXPECT_EQ(routes_.of("mini").standing().broken, 0U);
  say(0, event("b"));
  end(0, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
}

TEST_F(HandOverTest, OneThatHasNoEventYetBeginsElsewhere) {
  ask(kStream);
  stop_one();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  EXPECT_FALSE(call(1).request.has_resume());
}

TEST_F(HandOverTest, AUnaryAnswerThatHasBegunIsMadeOnceMoreElsewhere) {
  ask(kUnary);
  call(0).content_type = "application/json";
  call(0).chunk("half");
  loop_.poll();
  stop_one();
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  loop_.poll();
  EXPECT_EQ(reply_.text, "{}");
}

TEST_F(HandOverTest, WhereAnswersDoNotGoOnNobodyIsTold) {
  limits_.resume = false;
  serve({"r1", "r2", "r3"});
  ask_and_hear();
  drain();
  stop_one();
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_FALSE(call(0).cancelled);
}

}  // namespace
}  // namespace penstock::proxy
