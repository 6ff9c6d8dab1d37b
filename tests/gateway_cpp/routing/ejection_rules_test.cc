// What a ReplicaSet makes of failures, silence and time.
#include "set_fixture.h"

namespace penstock::routing {
namespace {

class EjectionRules : public SetFixture {
 protected:
  static LoadReport working(std::uint64_t tokens) {
    return {.running = 1, .calls = 1, .gateways = 1, .tokens = tokens};
  }
  std::string reason() {
    const auto doubts = set_.doubts(now_);
    return doubts.empty() ? "" : doubts[0].replica.value + " " + std::string(doubts[0].reason);
  }
};

TEST_F(EjectionRules, ADoubtedReplicaGetsNothingThenOneProbeThenAll) {
  follow(2);
  fail("r0", Failure::kLost);
  EXPECT_EQ(reason(), "r0 unreachable");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "r1");
  EXPECT_FALSE(set_.advance(now_ + milliseconds(999)));
  pass(seconds(1));
  EXPECT_TRUE(set_.advance(now_));
  EXPECT_EQ(reason(), "");
  for (int i = 0; i < 4; ++i) reserve();
  EXPECT_EQ(at("r0").in_flight(), 1U);
  set_.note_success(at("r0"), now_);
  pass(seconds(10));
  for (int i = 0; i < 4; ++i) reserve();
  EXPECT_EQ(at("r0").in_flight(), 4U);
}

TEST_F(EjectionRules, AProbeThatTakesItsTimeMakesRoomForAnotherAndHoldsNobody) {
  follow(2);
  fail("r0", Failure::kLost);
  pass(seconds(1));
  set_.advance(now_);
  for (int i = 0; i < 4; ++i) reserve();
  EXPECT_EQ(at("r0").in_flight(), 1U);
  pass(seconds(11));
  set_.advance(now_);
  for (int i = 0; i < 4; ++i) reserve();
  EXPECT_EQ(at("r0").in_flight(), 2U);
}

TEST_F(EjectionRules, ReasonsSayWhatFailed) {
  follow(3);
  for (int i = 0; i < 3; ++i) fail("r1", Failure::kBadAnswer);
  EXPECT_EQ(reason(), "r1 failing");
  set_.note_success(at("r1"), now_);
  for (int i = 0; i < 3; ++i) fail("r2", Failure::kNoFirstEvent);
  EXPECT_EQ(reason(), "r2 slow");
  EXPECT_EQ(set_.doubts(now_)[0].left, seconds(1));
}

TEST_F(EjectionRules, DoubtsAreCountedByReasonWhenTheyOpen) {
  route_.limits.progress_deadline = seconds(5);
  follow(3);
  for (int i = 0; i < 5; ++i) fail("r0", Failure::kBadAnswer);
  for (int i = 0; i < 5; ++i) fail("r1", Failure::kLost);
  EXPECT_EQ(set_.ejections(), (Ejections{1, 1, 0, 0})) << "more of the same adds nothing";
  pass(seconds(60));
  set_.note_success(at("r0"), now_);
  report("r2", working(7));
  pass(seconds(6));
  for (int i = 0; i < 3; ++i) {
    set_.advance(now_);
    pass(seconds(2));
  }
  EXPECT_EQ(reason(), "r2 no_progress");
  EXPECT_EQ(set_.ejections(), (Ejections{1, 1, 0, 1}));
}

TEST_F(EjectionRules, TheLastUsableReplicaIsEjectedOnlyWhenItIsLost) {
  follow(2);
  fail("r0", Failure::kLost);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(fail("r1", Failure::kBadAnswer), seconds(0));
  EXPECT_FALSE(set_.another_is_usable({"r1"}, now_));
  EXPECT_TRUE(set_.another_is_usable({"r0"}, now_));
  EXPECT_EQ(asked(), "r1");
  EXPECT_GT(fail("r1", Failure::kLost), seconds(0));
  EXPECT_FALSE(set_.another_is_usable({"r0"}, now_));
  EXPECT_NE(asked(), "");
}

TEST_F(EjectionRules, ANewLoadStreamEndsTheDoubtOfALostProcess) {
  follow(2);
  fail("r0", Failure::kLoadEnded);
  set_.note_back(at("r0"), now_);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(set_.counts().with_room, 2U);
}

TEST_F(EjectionRules, AReplicaThatHasWorkAndMakesNothingIsSuspectedUntilItMoves) {
  route_.limits.progress_deadline = seconds(5);
  follow(2);
  report("r0", working(7));
  report("r1", working(7));
  pass(seconds(4));
  report("r1", working(8));
  report("r0", working(7));
  EXPECT_FALSE(set_.advance(now_));
  pass(seconds(1));
  set_.advance(now_);
  EXPECT_EQ(reason(), "r0 no_progress");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "r1");
  report("r0", working(8));
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(set_.counts().with_room, 2U);
}

TEST_F(EjectionRules, StepsAndPromptTokensAreProgressToo) {
  route_.limits.progress_deadline = seconds(5);
  follow(2);
  LoadReport load = working(0);
  for (int i = 0; i < 8; ++i) {
    (i % 2 == 0 ? load.steps : load.prompt_tokens) += 1;
    report("r0", load);
    pass(seconds(4));
    set_.advance(now_);
    EXPECT_EQ(reason(), "");
  }
}

TEST_F(EjectionRules, AReplicaWithoutWorkIsNotSuspected) {
  route_.limits.progress_deadline = seconds(5);
  follow(2);
  report("r0", {.tokens = 7});
  pass(std::chrono::hours(1));
  set_.advance(now_);
  EXPECT_EQ(reason(), "");
}

TEST_F(EjectionRules, ACallThatTheEngineNeverTookUpIsWorkAndOneThatItFinishedIsNone) {
  route_.limits.progress_deadline = seconds(5);
  route_.selection_policy = "round_robin";
  follow(2);
  report("r0", {.tokens = 7});
  report("r1", {.tokens = 7});
  const auto first = reserve();
  const auto second = reserve();
  ASSERT_NE(first, second);
  pass(seconds(1));
  set_.report(*first, {.calls = 1, .gateways = 1, .tokens = 9}, now_);  // its reader is slow
  pass(seconds(5));
  set_.advance(now_);
  EXPECT_EQ(reason(), second->id().value + " no_progress");
  EXPECT_EQ(set_.doubts(now_).size(), 1U);
  set_.release(*second, now_);
  EXPECT_EQ(reason(), "");
}

TEST_F(EjectionRules, TheLastUsableReplicaIsNotSuspectedUntilAnotherCanTakeItsWork) {
  route_.limits.progress_deadline = seconds(5);
  follow(1);
  report("r0", working(7));
  pass(seconds(60));
  set_.advance(now_);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(asked(), "r0");
  follow(2);
  pass(seconds(2));
  set_.advance(now_);
  EXPECT_EQ(reason(), "r0 no_progress");
}

TEST_F(EjectionRules, WithoutADeadlineNobodyIsSuspected) {
  follow(2);
  report("r0", working(7));
  pass(std::chrono::hours(1));
  set_.advance(now_);
  EXPECT_EQ(reason(), "");
}

}  // namespace
}  // namespace penstock::routing
