#include "routing/replica_set.h"

#include "set_fixture.h"

namespace penstock::routing {
namespace {

class ReplicaSetTest : public SetFixture {};

TEST_F(ReplicaSetTest, HasNobodyBeforeTheFirstSnapshot) {
  EXPECT_EQ(reserve(), nullptr);
  EXPECT_EQ(set_.counts(), Counts{});
  EXPECT_EQ(set_.find({"r0"}), nullptr);
}

TEST_F(ReplicaSetTest, ReservesUpToTheLimitAndAgainAfterARelease) {
  route_.limits.max_ongoing = 2;
  follow(1);
  const auto first = reserve();
  const auto second = reserve();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->in_flight(), 2U);
  EXPECT_EQ(reserve(), nullptr);
  EXPECT_EQ(set_.counts().with_room, 0U);
  set_.release(*first, now_);
  EXPECT_EQ(set_.counts().with_room, 1U);
  EXPECT_NE(reserve(), nullptr);
}

TEST_F(ReplicaSetTest, TakesTheEnginesSlotsForTheLimitWhereNoneIsSet) {
  follow(1);
  for (int i = 0; i < 8; ++i) EXPECT_NE(reserve(), nullptr);  // its route says 8
  EXPECT_EQ(reserve(), nullptr);
  report("r0", {.max_running = 9, .calls = 8, .gateways = 1});
  EXPECT_NE(reserve(), nullptr);
  EXPECT_EQ(reserve(), nullptr);
}

TEST_F(ReplicaSetTest, SendsNothingToAFullEngineWhoseQueueIsNotEmpty) {
  follow(1);
  EXPECT_NE(reserve(), nullptr);
  report("r0", {.running = 4, .waiting = 1, .max_running = 4, .calls = 1, .gateways = 1});
  EXPECT_EQ(reserve(), nullptr);
  route_.limits.max_ongoing = 8;
  follow();
  EXPECT_NE(reserve(), nullptr);
}

TEST_F(ReplicaSetTest, LeavesAReplicaAloneThatIsNotReadyByTheRoutesOrItsOwnWord) {
  follow(3);
  replicas_[0].state = ReplicaState::kStarting;
  replicas_[1].state = ReplicaState::kDraining;
  follow();
  EXPECT_EQ(set_.counts(), (Counts{.ready = 1, .with_room = 1, .starting = 1}));
  EXPECT_EQ(asked(), "r2");
  report("r2", {.serving = false});
  EXPECT_EQ(set_.counts().ready, 0U);
  EXPECT_EQ(reserve(), nullptr);
}

TEST_F(ReplicaSetTest, LeavesAReplicaAloneWhoseKvIsUnderPressure) {
  route_.limits.kv_pressure = 0.5F;
  follow(2);
  report("r0", {.kv_usage = 0.6F});
  EXPECT_EQ(set_.counts(), (Counts{.ready = 2, .with_room = 1, .under_pressure = 1}));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "r1");
  report("r0", {.kv_usage = 0.5F});
  EXPECT_EQ(set_.counts().with_room, 2U);
  report("r1", {.kv_usage = 0.6F});
  EXPECT_EQ(asked(), "r0");
  route_.limits.kv_pressure = 0;
  follow();
  EXPECT_EQ(set_.counts().with_room, 2U);
}

TEST_F(ReplicaSetTest, LeavesAReplicaAloneWhileItsEngineTakesBackPlacesForWantOfBlocks) {
  route_.limits.kv_pressure = 0.5F;
  follow(2);
  report("r0", {.preemptions = 7});
  EXPECT_EQ(set_.counts().under_pressure, 0U) << "nobody knows when";
  report("r0", {.preemptions = 8});
  EXPECT_EQ(set_.counts(), (Counts{.ready = 2, .with_room = 1, .under_pressure = 1}));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "r1");
  report("r0", {.preemptions = 8});
  EXPECT_EQ(set_.counts().under_pressure, 0U);
  report("r0", {.preemptions = 0});
  EXPECT_EQ(set_.counts().under_pressure, 0U) << "it has begun anew";
  route_.limits.kv_pressure = 0;
  follow();
  report("r0", {.preemptions = 1});
  EXPECT_EQ(set_.counts().under_pressure, 0U) << "no limit";
}

TEST_F(ReplicaSetTest, PassesOverWhatTheRequestHasTried) {
  follow(3);
  const std::vector<ReplicaId> tried = {{"r0"}, {"r2"}, {"r2"}, {"unknown"}};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(asked({.excluded = tried}), "r1");
  const std::vector<ReplicaId> all = {{"r0"}, {"r1"}, {"r2"}};
  EXPECT_EQ(reserve({.excluded = all}), nullptr);
}

TEST_F(ReplicaSetTest, TakesADoubtedReplicaOnlyWhereNoOtherIsLeft) {
  route_.limits.max_ongoing = 1;
  follow(2);
  EXPECT_EQ(fail("r0", Failure::kLost), seconds(1));
  EXPECT_EQ(chosen(), "r1");
  EXPECT_EQ(chosen(), "");  // r1 is full: one waits for it
  const std::vector<ReplicaId> tried = {{"r1"}};
  EXPECT_EQ(asked({.excluded = tried}), "r0");
  EXPECT_EQ(fail("r1", Failure::kUnreachable), seconds(1));
  EXPECT_EQ(chosen(), "r0");
  EXPECT_EQ(chosen(), "");  // never beyond its limit
}

TEST_F(ReplicaSetTest, KeepsCallsAndDoubtsAcrossSnapshots) {
  route_.limits.max_ongoing = 1;
  follow(2);
  const auto call = reserve();
  fail("r0", Failure::kLost);
  fail("r1", Failure::kLost);
  route_.selection_policy = "least_loaded";
  follow();
  EXPECT_EQ(set_.find(call->id())->in_flight(), 1U);
  EXPECT_EQ(set_.doubts(now_).size(), 2U);
  EXPECT_EQ(set_.counts().with_room, 1U);
}

TEST_F(ReplicaSetTest, KnowsAReplicaAgainThatWasAwayForASnapshot) {
  route_.limits.max_ongoing = 1;
  follow(1);
  const auto call = reserve();
  set_.follow(route_, {}, now_);
  EXPECT_EQ(set_.counts(), Counts{});
  EXPECT_EQ(set_.find({"r0"}), nullptr);
  follow();
  EXPECT_EQ(set_.find({"r0"}), call);
  EXPECT_EQ(reserve(), nullptr);
  set_.release(*call, now_);
  EXPECT_NE(reserve(), nullptr);
}

TEST_F(ReplicaSetTest, AReplicaThatCameBackElsewhereBeginsAnew) {
  route_.limits.max_ongoing = 1;
  follow(1);
  const auto call = reserve();
  replicas_[0].address = "elsewhere:1";
  follow();
  EXPECT_NE(set_.find({"r0"}), call);
  EXPECT_NE(reserve(), nullptr);
  EXPECT_EQ(reserve(), nullptr);
  set_.release(*call, now_);  // ended after the replica had left
  EXPECT_EQ(reserve(), nullptr);
  EXPECT_EQ(call->in_flight(), 0U);
}

TEST_F(ReplicaSetTest, TakesUpOtherLimitsAtOnce) {
  route_.limits.max_ongoing = 1;
  follow(1);
  EXPECT_NE(reserve(), nullptr);
  EXPECT_EQ(reserve(), nullptr);
  route_.limits.max_ongoing = 2;
  follow();
  EXPECT_NE(reserve(), nullptr);
  EXPECT_EQ(reserve(), nullptr);
}

}  // namespace
}  // namespace penstock::routing
