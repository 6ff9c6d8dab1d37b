// Roles: requests that nobody leads go to replicas that decode, and to others where none is left.
#include <gtest/gtest.h>

#include "set_fixture.h"

namespace penstock::routing {
namespace {

using What = ReplicaSet::What;

class RolesTest : public SetFixture {
 protected:
  // r0 prefills, r1 decodes.
  RolesTest() {
    route_.limits.max_ongoing = 1;
    follow(2);
    replicas_[0].role = Role::kPrefill;
    replicas_[1].role = Role::kDecode;
    follow();
  }
};

TEST_F(RolesTest, HasRoomForWhatItsDecodeReplicasHaveRoomFor) {
  EXPECT_EQ(set_.counts().with_room, 1U);
  EXPECT_EQ(chosen(), "r1");
  EXPECT_EQ(set_.counts().with_room, 0U);
  EXPECT_EQ(chosen(), "");
}

TEST_F(RolesTest, SendsAPlainRequestToPrefillWhereNoReplicaDecodes) {
  report("r1", {.serving = false});
  EXPECT_EQ(set_.counts().with_room, 1U);
  EXPECT_EQ(asked(), "r0");
  report("r1", {});
  EXPECT_EQ(asked(), "r1");
}

TEST_F(RolesTest, SendsWhatEveryDecodeReplicaHasFailedToPrefill) {
  const std::vector<ReplicaId> tried = {{"r1"}};
  EXPECT_EQ(asked({.excluded = tried}), "r0");
}

TEST_F(RolesTest, FollowsAReplicaThatChangesItsRole) {
  replicas_[1].role = Role::kPrefill;
  follow();
  EXPECT_EQ(set_.counts().with_room, 2U);
  replicas_[0].role = Role::kDecode;
  follow();
  EXPECT_EQ(asked(), "r0");
}

TEST_F(RolesTest, KeepsRoomAtThatReplicaForWhoeverNamesIt) {
  const auto leg = set_.reserve_at({"r0"}, What::kLeg, now_);
  ASSERT_TRUE(leg);
  EXPECT_EQ(leg->generating(), 0U);
  EXPECT_EQ(set_.reserve_at({"r0"}, What::kLeg, now_), nullptr);
  set_.release_leg(*leg, now_);
  const auto answer = set_.reserve_at({"r0"}, What::kAnswer, now_);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->generating(), 1U);
  EXPECT_EQ(answer->places_left(), 0U);
  EXPECT_EQ(set_.reserve_at({"nobody"}, What::kAnswer, now_), nullptr);
}

TEST_F(RolesTest, DoesNotTakeAReplicaThatMovesKvForOneThatHangs) {
  route_.limits.progress_deadline = seconds(1);
  route_.limits.max_ongoing = 0;
  follow();
  report("r1", {.running = 1, .tokens = 1});
  pass(seconds(2));
  report("r1", {.running = 1, .tokens = 1, .transfers = 1});
  set_.advance(now_);
  EXPECT_TRUE(set_.doubts(now_).empty());
  pass(seconds(2));
  set_.advance(now_);
  EXPECT_EQ(set_.doubts(now_).size(), 1U);
}

}  // namespace
}  // namespace penstock::routing
