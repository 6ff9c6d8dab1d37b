// What is told of a choice: who was looked at, and why each was taken or was not.
#include "routing/pick.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "set_fixture.h"

namespace penstock::routing {
namespace {

class PickTest : public SetFixture {
 protected:
  // The choice; each replica that was looked at, with its verdict.
  std::map<std::string, std::string> picked(const Traits& traits = {}) {
    const auto replica = set_.reserve(traits, now_, &pick_);
    std::map<std::string, std::string> looks;
    for (std::size_t i = 0; i < pick_.size(); ++i) {
      const Look look = pick_.look(i);
      looks[std::string(look.replica)] = name(look.verdict);
    }
    EXPECT_EQ(replica ? replica->id().value : "", replica ? pick_.look(0).replica : "");
    EXPECT_EQ(pick_.look(0).verdict, Verdict::kTaken);
    return looks;
  }
  using Looks = std::map<std::string, std::string>;

  Pick pick_;
};

TEST_F(PickTest, TellsBothOfTwoAndHowManyOthersThereAre) {
  follow(5);
  const auto looks = picked();
  EXPECT_EQ(pick_.policy, "power_of_two");
  EXPECT_EQ(looks.size(), 2U);
  EXPECT_EQ(std::ranges::count(looks, "busier", &Looks::value_type::second), 1);
  EXPECT_EQ(pick_.more, 3U);
}

TEST_F(PickTest, TellsLoadsAsTheyWereBeforeTheCall) {
  route_.selection_policy = "least_loaded";
  follow(2);
  reserve();
  reserve();
  picked();
  EXPECT_EQ(pick_.policy, "least_loaded");
  EXPECT_EQ(pick_.look(0).load, 1U);
}

TEST_F(PickTest, SaysOfThoseOfAFewThatCannotBeCalledWhy) {
  follow(5);
  replicas_[3].state = ReplicaState::kStarting;
  replicas_[4].state = ReplicaState::kDraining;
  follow();
  fail("r1", Failure::kLost);
  const std::vector<ReplicaId> tried{{"r2"}};
  EXPECT_EQ(picked({.excluded = tried}), (Looks{{"r0", "taken"},
                                                {"r1", "doubted"},
                                                {"r2", "tried"},
                                                {"r3", "not_ready"},
                                                {"r4", "draining"}}));
  EXPECT_EQ(pick_.more, 0U);
}

TEST_F(PickTest, SaysWhoIsFull) {
  route_.limits.max_ongoing = 1;
  follow(2);
  const std::string first = chosen();
  const auto looks = picked();
  EXPECT_EQ(looks.at(first), "full");
}

TEST_F(PickTest, SaysWhoseRoomIsKeptForPrefill) {
  follow(2);
  replicas_[0].role = Role::kPrefill;
  replicas_[1].role = Role::kDecode;
  follow();
  EXPECT_EQ(picked(), (Looks{{"r0", "prefill"}, {"r1", "taken"}}));
}

TEST_F(PickTest, SaysWhoCannotGoOnWithAnAnswer) {
  follow(2);
  report("r0", {.config_hash = "a", .resumes = true});
  report("r1", {.config_hash = "b", .resumes = true});
  const auto looks = picked({.continues = at("r1").config()});
  EXPECT_EQ(looks, (Looks{{"r0", "unequal"}, {"r1", "taken"}}));
  EXPECT_EQ(pick_.policy, "resume");
}

TEST_F(PickTest, SaysWhoTakesNoAdapters) {
  follow(2);
  report("r0", {.adapter_slots = 0});
  report("r1", {.adapter_slots = 2});
  picked({.adapter = "pirate@1"});
  EXPECT_EQ(pick_.policy, "adapter");
  EXPECT_EQ(pick_.look(0).replica, "r1");
}

TEST_F(PickTest, TellsNoMoreThanEightAndCountsTheRest) {
  route_.selection_policy = "session";
  follow(100);
  for (std::uint64_t i = 1; i < 200; ++i) {
    picked({.session = mix(i)});
    EXPECT_LE(pick_.size(), Pick::kMost);
    EXPECT_EQ(pick_.size() + pick_.more, 100U);
  }
}

TEST(Pick, IsHandedOnWithAllThatItSays) {
  Pick from;
  from.begin("power_of_two");
  from.add("r1", 3, Verdict::kTaken);
  from.add("replica-2", 4, Verdict::kBusier);
  from.more = 7;
  Pick to;
  to.begin("least_loaded");
  to.add("r9", 1, Verdict::kTaken);
  to.take(from);
  EXPECT_EQ(to.policy, "power_of_two");
  EXPECT_EQ(to.size(), 2U);
  EXPECT_EQ(to.look(1).replica, "replica-2");
  EXPECT_EQ(to.look(1).load, 4U);
  EXPECT_EQ(to.more, 7U);
  EXPECT_EQ(from.size(), 0U);
  EXPECT_TRUE(from.policy.empty());
}

}  // namespace
}  // namespace penstock::routing
