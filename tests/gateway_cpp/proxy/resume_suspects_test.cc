// Answers that go on although an engine died: of them, or of another.
#include "resume_fixture.h"

namespace penstock::proxy {
namespace {

using Outcome = base::ResumeOutcome;
using Reason = base::ResumeReason;

class ResumeSuspectsTest : public ResumeTest {
 protected:
  ~ResumeSuspectsTest() override {
    other_.leave();
    loop_.poll();
  }
  static std::string other_body() {
    return R"({"model":"mini","stream":true,"messages":[{}],"seed":1})";
  }
  // Two answers of r1, each with so many tokens; then these replicas are there.
  void two_at_r1(uint32_t tokens, const std::vector<std::string>& then) {
    serve({"r1"});
    ask_and_hear(tokens);
    ask_as(other_, other_body());
    say(1, event("x"), tokens);
    serve(then);
  }
  void crash_both(size_t one, size_t other) {
    die(one);
    die(other);
  }
  // Where each call went, in their order.
  std::vector<std::string> replicas() {
    std::vector<std::string> found;
    for (const auto& one : upstream_.calls) found.push_back(one->replica);
    return found;
  }

  FakeReply other_;
};

TEST_F(ResumeSuspectsTest, GoesOnAtOnceWhereItRanForLong) {
  two_at_r1(32, {"r1", "r2"});
  crash_both(0, 1);
  EXPECT_EQ(replicas(), (std::vector<std::string>{"r1", "r1", "r2", "r2"}));
  EXPECT_FALSE(suspects_.empty()) << "both may be it";
}

TEST_F(ResumeSuspectsTest, GoesApartWhereItIsYoung) {
  two_at_r1(31, {"r1", "r2"});
  crash_both(0, 1);
  EXPECT_EQ(replicas(), (std::vector<std::string>{"r1", "r1", "r2"})) << "one at a time";
  say(2, event("b"));
  end(2, 32);
  EXPECT_EQ(reply_.text, event("a") + event("b") + kEnd);
  pass(milliseconds(150));
  ASSERT_EQ(upstream_.calls.size(), 4U) << "its turn has come";
  say(3, event("y"));
  end(3, 32);
  EXPECT_EQ(other_.text, event("x") + event("y") + kEnd);
  EXPECT_FALSE(suspects_.empty());
  EXPECT_EQ(suspects_.suspicion(fingerprint(kStream), clock_.wall_now()).value(),
            admission::Suspicion::kClear)
      << "it was answered";
}

TEST_F(ResumeSuspectsTest, GoesApartAfterASecondCrash) {
  two_at_r1(40, {"r1", "r2", "r3"});
  routes_.of("mini").note_failure(routes_.replica("mini", 2), routing::Failure::kLost);
  crash_both(0, 1);
  ASSERT_EQ(replicas(), (std::vector<std::string>{"r1", "r1", "r2", "r2"}));
  say(2, event("b"));
  say(3, event("y"));
  pass(seconds(11));
  serve({"r1", "r2", "r3"});
  report(2);
  crash_both(2, 3);
  EXPECT_EQ(upstream_.calls.size(), 4U) << "first all that were aboard are to have heard of it";
  pass(milliseconds(150));
  EXPECT_EQ(replicas(), (std::vector<std::string>{"r1", "r1", "r2", "r2", "r3", "r1"}))
      << "each alone, where nothing is known to be wrong";
}

TEST_F(ResumeSuspectsTest, IsToldWhereItIsProvedToHaveDoneIt) {
  ask_and_hear(40);
  die(0);
  say(1, event("b"));
  die(1);
  pass(milliseconds(150));
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 2U) << "two engines, and no third";
  EXPECT_NE(reply_.text.find("engine_dead"), std::string::npos) << reply_.text;
  EXPECT_EQ(reply_.text.find("quarantined"), std::string::npos);
}

TEST_F(ResumeSuspectsTest, IsHeldBackByNoKillAndNoHang) {
  ask_and_hear(1);
  die(0, "engine_killed");
  say(1, event("b"));
  die(1, "engine_hung");
  ASSERT_EQ(upstream_.calls.size(), 3U);
  say(2, event("c"));
  end(2, 3);
  EXPECT_EQ(reply_.text, event("a") + event("b") + event("c") + kEnd);
  EXPECT_EQ(resumes(Reason::kKill, Outcome::kResumed), 1U);
  EXPECT_EQ(resumes(Reason::kHang, Outcome::kResumed), 1U);
  EXPECT_EQ(suspects_.suspicion(fingerprint(kStream), clock_.wall_now()).value(),
            admission::Suspicion::kClear);
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneThatIsKilledBeginsOnceMore) {
  ask(kUnary);
  die(0, "engine_killed");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_FALSE(call(1).request.has_resume());
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  loop_.poll();
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneThatKillsEnginesHasTwo) {
  serve({"r1", "r2", "r3", "r4"});
  ask(kUnary);
  die(0);
  die(1);
  pass(milliseconds(150));
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_NE(reply_.text.find("engine_dead"), std::string::npos);
  ask_again(kUnary);
  EXPECT_EQ(reply_.status, 400U) << "nor does it come again";
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneHasThreeReplicasAtMost) {
  serve({"r1", "r2", "r3", "r4"});
  ask(kUnary);
  for (size_t i = 0; i < 3; ++i) die(i, "engine_killed");
  EXPECT_TRUE(done_);
  EXPECT_EQ(upstream_.calls.size(), 3U);
  EXPECT_EQ(reply_.status, 503U);
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneWaitsForAReplica) {
  serve({"r1"});
  ask(kUnary);
  lose(0);
  serve({});
  pass(seconds(5));
  EXPECT_FALSE(done_);
  serve({"r2"});
  pass(milliseconds(150));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  call(1).content_type = "application/json";
  call(1).chunk("{}");
  call(1).finish();
  loop_.poll();
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneBeginsOnceMoreWhereItsEngineIsBack) {
  serve({"r1"});
  ask(kUnary);
  die(0, "engine_killed");
  EXPECT_EQ(upstream_.calls.size(), 1U) << "something speaks against it";
  pass(milliseconds(1'200));
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "r1");
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneIsToldWhereNoReplicaComes) {
  serve({"r1"});
  ask(kUnary);
  lose(0);
  serve({});
  pass(milliseconds(9'900));
  EXPECT_FALSE(done_);
  pass(milliseconds(200));
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.status, 502U);
}

TEST_F(ResumeSuspectsTest, OfUnaryAnswersOneIsGivenUpWithItsClient) {
  serve({"r1"});
  ask(kUnary);
  lose(0);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
}

}  // namespace
}  // namespace penstock::proxy
