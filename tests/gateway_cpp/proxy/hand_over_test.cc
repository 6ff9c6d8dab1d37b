// Streams whose replica is stuck or leaves: they take a place elsewhere first.
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

using Outcome = base::ResumeOutcome;
using Reason = base::ResumeReason;

class HandOverTest : public ResumeTest {
 protected:
  // Of these replicas the first leaves, as it was asked to.
  void leave_first(const std::vector<std::string>& replicas) {
    auto deployment = routing::deployment("mini", {}, limits_);
    deployment.selection_policy = "round_robin";
    routing::RouteSnapshot snapshot{.version = 2, .deployments = {deployment}, .replicas = {}};
    for (const auto& id : replicas) snapshot.replicas.push_back(routing::replica(id, "mini"));
    snapshot.replicas.front().hand_over_at = clock_.wall_now();
    snapshot.replicas.front().state = routing::ReplicaState::kDraining;
    routes_.replace(snapshot);
    pass(milliseconds(100));
  }
};

TEST_F(HandOverTest, GoesOnElsewhereAndIsCancelledWhereItWas) {
  ask_and_hear(3);
  call(0).keeps_cancelled = true;
  leave_first({"r1", "r2", "r3"});
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  EXPECT_EQ(call(1).request.resume().events(), 1U);
  say(1, event("b"));
  end(1, 4);
  call(0).acknowledge(7, 6);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(resumes(Reason::kHandOver, Outcome::kResumed), 1U);
  EXPECT_EQ(used().prompt_tokens, 7U);
  EXPECT_EQ(used().completion_tokens, 4U);
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(HandOverTest, RunsOnUntilThereIsRoomElsewhere) {
  limits_.max_ongoing = 1;
  serve({"r1", "r2"});
  FakeReply other;
  ask_and_hear();
  ask_as(other, kStream);
  leave_first({"r1", "r2"});
  say(0, event("b"));
  say(0, event("c"));
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c"));
  say(1, event("x"));
  end(1, 1);
  ASSERT_EQ(upstream_.calls.size(), 3U) << "there is room";
  EXPECT_EQ(call(2).request.resume().events(), 3U);
  say(2, event("d"));
  end(2, 43);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c") + event("d") + kEnd);
}

TEST_F(HandOverTest, EndsWhereItIsWithoutAnEqualReplica) {
  serve({"r1", "r2"});
  report(1, "c2");
  ask_and_hear();
  leave_first({"r1", "r2"});
  pass(seconds(30));
  say(0, event("b"));
  end(0, 41);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(in_flight(1), 0U);
}

TEST_F(HandOverTest, IsToldAtTheEndOfTheDrainWithoutAnEqualReplica) {
  serve({"r1", "r2"});
  report(1, "c2");
  ask_and_hear();
  leave_first({"r1", "r2"});
  refuse(0, "draining");
  pass(seconds(10));
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(HandOverTest, GoesOnAtOnceWhereItsReplicaDiesMeanwhile) {
  limits_.max_ongoing = 1;
  serve({"r1", "r2", "r3"});
  FakeReply one;
  FakeReply two;
  ask_and_hear();
  ask_as(one, kStream);
  ask_as(two, kStream);
  leave_first({"r1", "r2", "r3"});
  lose(0);
  EXPECT_EQ(upstream_.calls.size(), 3U);
  say(1, event("x"));
  end(1, 1);
  ASSERT_EQ(upstream_.calls.size(), 4U);
  say(3, event("b"));
  end(3, 41);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(resumes(Reason::kLost, Outcome::kResumed), 1U);
  two.leave();
  loop_.poll();
}

TEST_F(HandOverTest, LeavesNothingBehindWithItsClient) {
  limits_.max_ongoing = 1;
  serve({"r1", "r2"});
  FakeReply other;
  ask_and_hear();
  ask_as(other, kStream);
  leave_first({"r1", "r2"});
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  say(1, event("x"));
  end(1, 1);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(in_flight(1), 0U);
}

TEST_F(HandOverTest, GoesOnFromAReplicaThatIsStuck) {
  limits_.progress_deadline = seconds(2);
  serve({"r1", "r2"});
  ask_and_hear(3);
  for (int i = 0; i < 30; ++i) {
    routes_.of("mini").report(routes_.replica("mini", 0), {.running = 1,
                                                           .tokens = 3,
                                                           .steps = 3,
                                                           .config_hash = "c1",
                                                           .resumes = true});
    report(1);
    pass(milliseconds(100));
  }
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(call(0).cancelled);
  say(1, event("b"));
  end(1, 4);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  EXPECT_EQ(resumes(Reason::kHang, Outcome::kResumed), 1U);
}

}  // namespace
}  // namespace penstock::proxy
