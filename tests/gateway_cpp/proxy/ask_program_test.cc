// A router program says where a request goes, or fails to: then it goes where it has its place.
#include <gtest/gtest.h>

#include "program_fixture.h"

namespace penstock::proxy {
namespace {

using admission::ProgramOutcome;

TEST_F(ProgramFlowTest, ARequestGoesWhereItsProgramSays) {
  ask(kStream);
  ASSERT_EQ(upstream_.calls.size(), 0U);
  EXPECT_EQ(asked().program_digest(), "d1");
  EXPECT_EQ(asked().args(), R"({"a":1})");
  EXPECT_EQ(asked().request_id(), "req_1");
  EXPECT_EQ(asked().deployment(), "mini");
  EXPECT_EQ(asked().path(), "/v1/chat/completions");
  ASSERT_EQ(asked().engines_size(), 3);
  EXPECT_EQ(asked().engines(2).role(), "prefill") << "they are in the order of their ids";
  EXPECT_EQ(asked().engines(1).places_left(), 8U) << "its own place is one that it would have";
  EXPECT_TRUE(asked().engines(1).moves_kv());
  program().decide(asked().ask_id(), "p1");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().replica, "p1");
  EXPECT_FALSE(call().request.has_kv());
  call().chunk(kEnd);
  call().finish();
  EXPECT_TRUE(done_);
  EXPECT_EQ(reply_.header("x-penstock-replica"), "p1");
  EXPECT_EQ(reply_.header("x-penstock-kv-moved"), "");
  EXPECT_EQ(count(ProgramOutcome::kDecided), 1U);
  EXPECT_NE(log_.text().find(R"("program":"decided")"), std::string::npos);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(in_flight(i), 0U);
}

TEST_F(ProgramFlowTest, AProgramChoosesAmongTheReplicasOfOneArmAlone) {
  is_judged_ = true;
  serve();
  ask(kStream);
  ASSERT_EQ(asked().engines_size(), 1);
  EXPECT_EQ(asked().engines(0).replica_id(), "d2");
  program().decide(asked().ask_id(), "d1");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().replica, "d2");
  call().fail(400, "not_here", v1::FAULT_CLIENT, v1::RETRY_NEVER);
  loop_.poll();
  ASSERT_EQ(asked(1).engines_size(), 2) << "the stable arm has a program, too";
  program().decide(asked(1).ask_id(), "p1");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "p1");
  call(1).chunk(kEnd);
  call(1).finish();
  EXPECT_EQ(reply_.status, 200U);
}

TEST_F(ProgramFlowTest, AProgramMayLeaveItToTheGateway) {
  ask(kStream);
  program().decide(asked().ask_id(), "");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().replica[0], 'd') << "power_of_two goes to those that decode";
  EXPECT_EQ(count(ProgramOutcome::kLeft), 1U);
}

TEST_F(ProgramFlowTest, WithoutAProcessThatRunsItNobodyIsAsked) {
  program_.digest = "d9";
  serve();
  ask(kStream);
  EXPECT_TRUE(streams_.empty());
  ASSERT_EQ(upstream_.calls.size(), 1U);
}

TEST_F(ProgramFlowTest, OneThatFailsLeavesTheRequestWhereItHasItsPlace) {
  const std::vector<std::pair<std::string, ProgramOutcome>> ways = {
      {"raised", ProgramOutcome::kRaised}, {"unknown_program", ProgramOutcome::kUnknownProgram}};
  for (size_t i = 0; i < ways.size(); ++i) {
    FakeReply other;
    ask_as(other, kStream);
    program().fail(asked(static_cast<int>(i)).ask_id(), ways[i].first);
    ASSERT_EQ(upstream_.calls.size(), i + 1);
    call(i).chunk(kEnd);
    call(i).finish();
    EXPECT_EQ(other.status, 200U);
    EXPECT_EQ(count(ways[i].second), 1U);
  }
}

TEST_F(ProgramFlowTest, NonsenseIsNotFollowed) {
  ask(kStream);
  program().decide(asked().ask_id(), "r99");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ProgramOutcome::kNonsense), 1U);
  FakeReply other;
  ask_as(other, kStream);
  program().decide(asked(1).ask_id(), "d1", "no-lease");
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(count(ProgramOutcome::kNonsense), 2U);
  EXPECT_FALSE(call(1).request.has_kv());
  other.leave();
}

TEST_F(ProgramFlowTest, ASlowOneIsNotWaitedFor) {
  ask(kStream);
  pass(milliseconds(10));
  EXPECT_EQ(upstream_.calls.size(), 0U);
  pass(milliseconds(200));
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ProgramOutcome::kSlow), 1U);
  EXPECT_EQ(program().told.cancels(0), asked().ask_id());
  EXPECT_TRUE(program().decide(asked().ask_id(), "p1")) << "too late, and no fault";
}

TEST_F(ProgramFlowTest, ADeadOneIsKnownAtOnce) {
  ask(kStream);
  program().die();
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(count(ProgramOutcome::kDead), 1U);
}

TEST_F(ProgramFlowTest, OneThatFailsThreeTimesIsLeftAloneForAWhile) {
  std::vector<FakeReply> replies(5);
  for (size_t i = 0; i < 3; ++i) {
    ask_as(replies[i], kStream);
    program().fail(asked(static_cast<int>(i)).ask_id(), "raised");
  }
  EXPECT_NE(log_.text().find("left alone for a while"), std::string::npos);
  ask_as(replies[3], kStream);
  EXPECT_EQ(program().told.asks_size(), 3);
  EXPECT_EQ(upstream_.calls.size(), 4U);
  pass(seconds(10));
  ask_as(replies[4], kStream);
  EXPECT_EQ(program().told.asks_size(), 4);
  for (auto& reply : replies) reply.leave();
  loop_.poll();
}

TEST_F(ProgramFlowTest, AReplicaWithoutRoomIsNotGoneTo) {
  limits_.max_ongoing = 1;
  serve();
  ask(kStream);
  const auto leg = routes_.of("mini").place_leg({"p1"});
  ASSERT_TRUE(leg);
  program().decide(asked().ask_id(), "p1");
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_EQ(call().replica[0], 'd');
  EXPECT_EQ(count(ProgramOutcome::kNoPlace), 1U);
}

TEST_F(ProgramFlowTest, AFailedAttemptIsMadeAnewWithoutAsking) {
  ask(kStream);
  program().decide(asked().ask_id(), "d1");
  call().lose(Source::kUnreachable);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  EXPECT_EQ(call(1).replica, "d2");
  EXPECT_EQ(program().told.asks_size(), 1);
}

TEST_F(ProgramFlowTest, AClientThatLeavesTakesItsQuestionAlong) {
  ask(kStream);
  reply_.leave();
  loop_.poll();
  EXPECT_TRUE(done_);
  EXPECT_EQ(program().told.cancels(0), asked().ask_id());
  EXPECT_EQ(count(ProgramOutcome::kAbandoned), 1U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(in_flight(i), 0U);
}

TEST_F(ProgramFlowTest, SeveralPromptsAndPoolingAreNotAskedFor) {
  endpoint_ = openai::find_endpoint("/v1/completions");
  FakeReply several;
  ask_as(several, R"({"model":"mini","prompt":["a","b"]})");
  endpoint_ = openai::find_endpoint("/v1/embeddings");
  FakeReply pooled;
  ask_as(pooled, R"({"model":"mini","input":"a"})");
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(streams_.empty());
  several.leave();
  pooled.leave();
  loop_.poll();
}

TEST_F(ProgramFlowTest, WhatEnginesMayDieOfIsNotAskedFor) {
  const std::string path = "/v1/chat/completions";
  suspects_.died({.fingerprint = admission::fingerprint_of("", path, kStream),
                  .deployment = "mini",
                  .deployment_uid = "",
                  .path = path,
                  .deaths = {{.replica_id = "gone"}},
                  .until = {}},
                 clock_.wall_now());
  ask(kStream);
  EXPECT_EQ(upstream_.calls.size(), 1U);
  EXPECT_TRUE(streams_.empty());
}

}  // namespace
}  // namespace penstock::proxy
