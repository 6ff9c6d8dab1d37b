// Requests that replicas compute when an engine dies of the same request.
#include <algorithm>
#include <deque>

#include "verdicts_fixture.h"

namespace penstock::proxy {
namespace {

using SuspectsUnderWayTest = VerdictsTest;

TEST_F(SuspectsUnderWayTest, CallsBackTheSameRequestFromOtherReplicasWhenAnEngineDiesOfIt) {
  serve_from({"r1", "r2", "r3"});
  FakeReply second;
  FakeReply third;
  ask(kUnary);
  ask_as(second, kUnary);
  ask_as(third, kStream);
  ASSERT_EQ(upstream_.calls.size(), 3U);
  auto elsewhere = suspects_.board(fingerprint(kUnary), "r9",
                                   clock_.steady_now());  // at another thread of this gateway
  engine_dies(0);
  pass(milliseconds(400));
  EXPECT_TRUE(call(1).cancelled) << "never on two engines at once";
  EXPECT_FALSE(call(2).cancelled) << "another request";
  EXPECT_EQ(second.status, 0U) << "it waits for its place";
  elsewhere.reset();
  pass(milliseconds(400));
  ASSERT_EQ(upstream_.calls.size(), 4U);
  EXPECT_NE(call(3).replica, "r1") << "where the engine died";
  call(3).content_type = "application/json";
  call(3).chunk("{}");
  call(3).finish();
  EXPECT_EQ(second.status, 200U);
  const v1::RequestRecord& record = records_.last();
  EXPECT_EQ(record.attempts_made(), 2U) << "as many as are told";
  ASSERT_EQ(record.attempts_size(), 2);
  EXPECT_EQ(record.attempts(0).error(), "called_back");
  third.leave();
}

TEST_F(SuspectsUnderWayTest, LetsOneCopyOfARequestGoOnAloneWhenAnEngineDiesOfIt) {
  serve_from({"r1", "r2", "r3", "r4"});
  FakeReply second;
  FakeReply begun;
  FakeReply fourth;
  ask(kStream);
  ask_as(second, kStream);
  ask_as(begun, kStream);
  ask_as(fourth, kStream);
  call(2).chunk("data: a\n\n");
  engine_dies(0);
  pass(seconds(1));
  EXPECT_FALSE(call(2).cancelled) << "its answer has begun";
  EXPECT_EQ(call(1).cancelled + call(3).cancelled, 1) << "one of them goes on, as a suspect";
  for (FakeReply* reply : {&second, &begun, &fourth}) reply->leave();
}

TEST_F(SuspectsUnderWayTest, RefusesTheCopyThatRunsWhenTwoEnginesHaveDied) {
  serve_from({"r1", "r2", "r3"});
  FakeReply second;
  FakeReply third;
  ask(kUnary);
  ask_as(second, kUnary);
  ask_as(third, kUnary);
  engine_dies(0);
  engine_dies(1);
  pass(seconds(1));
  EXPECT_TRUE(call(2).cancelled);
  EXPECT_EQ(third.status, 400U);
}

TEST_F(SuspectsUnderWayTest, LooksAtMuchThatRunsOverSeveralTicks) {
  limits_.max_ongoing = 100;
  serve_from({"r1"});
  const std::string body =
      R"({"model":"mini","messages":[{}],"user":")" + std::string(60'000, 'x') + "\"}";
  std::deque<FakeReply> clients(40);
  for (FakeReply& client : clients) ask_as(client, body);
  ASSERT_EQ(upstream_.calls.size(), clients.size());
  die_elsewhere({{"r8"}, {"r9"}}, body);
  const auto refused = [&] {
    return std::count_if(clients.begin(), clients.end(),
                         [](const FakeReply& client) { return client.status == 400; });
  };
  pass(milliseconds(50));
  const auto at_once = refused();
  EXPECT_GT(at_once, 0);
  EXPECT_LT(at_once, 20) << "others of the thread have their turn";
  for (int i = 0; i < 3; ++i) pass(milliseconds(50));
  EXPECT_EQ(refused(), 40);
}

TEST_F(SuspectsUnderWayTest, RefusesASuspectThatRunsAloneOnceItIsQuarantined) {
  die_elsewhere({{"r8"}});
  ask(kUnary);
  ASSERT_EQ(upstream_.calls.size(), 1U);
  die_elsewhere({{"r9"}});
  pass(seconds(1));
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(reply_.status, 400U);
  EXPECT_FALSE(suspects_.occupied("r1"));
}

TEST_F(SuspectsUnderWayTest, LetsASuspectThatRunsAloneGoOnWhenAnotherRequestIsFound) {
  die_elsewhere({{"r8"}});
  ask(kUnary);
  die_elsewhere({{"r9"}}, "other");
  pass(seconds(1));
  EXPECT_FALSE(call().cancelled);
  EXPECT_TRUE(suspects_.occupied("r1"));
}

}  // namespace
}  // namespace penstock::proxy
