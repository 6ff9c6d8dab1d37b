// How each policy chooses, asked through the set as requests are.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "set_fixture.h"

namespace penstock::routing {
namespace {

class Policies : public SetFixture {
 protected:
  void use(const std::string& policy, std::size_t replicas) {
    route_.selection_policy = policy;
    follow(replicas);
  }
  std::map<std::string, int> spread(int requests, const Traits& traits = {}) {
    std::map<std::string, int> counts;
    for (int i = 0; i < requests; ++i) ++counts[asked(traits)];
    return counts;
  }
  // A load report that says how many calls others have there.
  void elsewhere(const std::string& id, std::uint32_t calls) {
    report(id, {.max_running = 64, .calls = calls, .calls_elsewhere = calls, .gateways = 1});
  }
};

class EachPolicy : public Policies, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, EachPolicy,
                         testing::Values("round_robin", "least_loaded", "power_of_two",
                                         "prefix_aware", "session", "", "unheard_of"),
                         [](const auto& info) {
                           return *info.param == '\0' ? std::string("none") : info.param;
                         });

TEST_P(EachPolicy, FillsAllReplicasAndNoneBeyondItsLimit) {
  route_.limits.max_ongoing = 3;
  use(GetParam(), 20);
  std::vector<std::shared_ptr<Replica>> calls;
  const std::uint64_t blocks[] = {1, 2};
  while (auto replica = reserve({.session = 7, .prefix = blocks})) calls.push_back(replica);
  EXPECT_EQ(calls.size(), 60U);
  for (const auto& replica : set_.replicas()) EXPECT_EQ(replica->in_flight(), 3U);
}

TEST_P(EachPolicy, PassesOverWhatTheRequestHasTried) {
  use(GetParam(), 3);
  const std::vector<ReplicaId> tried = {{"r0"}, {"r1"}};
  const std::uint64_t blocks[] = {1, 2};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(asked({.session = 7, .prefix = blocks, .excluded = tried}), "r2");
  }
}

TEST_P(EachPolicy, KeepsCountsWhenItIsReplaced) {
  route_.limits.max_ongoing = 4;
  use("least_loaded", 4);
  for (int i = 0; i < 8; ++i) reserve();
  use(GetParam(), 4);
  int more = 0;
  while (reserve()) ++more;
  EXPECT_EQ(more, 8);
}

TEST_P(EachPolicy, PrefersHoldersOfTheAdapterAndDoesWithoutThem) {
  use(GetParam(), 20);
  for (const char* id : {"r3", "r5"}) report(id, {.max_running = 64, .adapters = {"pirate@1"}});
  for (int i = 0; i < 20; ++i) {
    const std::string id = asked({.adapter = "pirate@1", .session = 7});
    EXPECT_TRUE(id == "r3" || id == "r5") << id;
  }
  const std::vector<ReplicaId> tried = {{"r3"}, {"r5"}};
  EXPECT_NE(asked({.adapter = "pirate@1", .session = 7, .excluded = tried}), "");
  report("r3", {.max_running = 64});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(asked({.adapter = "pirate@1"}), "r5");
  EXPECT_NE(asked({.adapter = "nowhere@1"}), "");
}

TEST_F(Policies, RoundRobinGivesEachItsTurn) {
  use("round_robin", 7);
  for (const auto& [id, count] : spread(700)) EXPECT_EQ(count, 100) << id;
}

TEST_F(Policies, RoundRobinMakesUpForNoTurnThatAFullReplicaMissed) {
  route_.limits.max_ongoing = 1;
  use("round_robin", 2);
  const auto held = reserve();
  const std::string other = held->id().value == "r0" ? "r1" : "r0";
  for (int i = 0; i < 50; ++i) EXPECT_EQ(asked(), other);
  set_.release(*held, now_);
  for (const auto& [id, count] : spread(10)) EXPECT_EQ(count, 5) << id;
}

TEST_F(Policies, LeastLoadedTakesTheFewestCallsAndEqualOnesInTurn) {
  use("least_loaded", 3);
  for (const auto& [id, count] : spread(9)) EXPECT_EQ(count, 3) << id;
  elsewhere("r0", 3);
  elsewhere("r1", 1);
  elsewhere("r2", 2);
  EXPECT_EQ(chosen(), "r1");
  for (int i = 0; i < 2; ++i) EXPECT_NE(chosen(), "r0");
}

TEST_F(Policies, LeastLoadedMeasuresLoadByPlaces) {
  use("least_loaded", 2);
  report("r0", {.max_running = 10});
  report("r1", {.max_running = 30});
  for (int i = 0; i < 24; ++i) reserve();
  EXPECT_EQ(at("r0").in_flight(), 6U);
  EXPECT_EQ(at("r1").in_flight(), 18U);
}

TEST_F(Policies, PowerOfTwoIsFarEvenerThanChance) {
  route_.limits.max_ongoing = 1000;
  use("power_of_two", 100);
  for (int i = 0; i < 10'000; ++i) reserve();
  std::uint32_t most = 0;
  for (const auto& replica : set_.replicas()) most = std::max(most, replica->in_flight());
  EXPECT_LE(most, 105U);  // chance alone: about 125
}

TEST_F(Policies, PowerOfTwoCountsTheCallsOfOtherGateways) {
  use("power_of_two", 2);
  elsewhere("r0", 20);
  EXPECT_EQ(spread(50)["r1"], 50);
}

TEST_F(Policies, AReplicaThatIsNewGetsATenthAtFirstAndItsShareAfterTenSeconds) {
  for (const char* policy : {"round_robin", "least_loaded", "power_of_two"}) {
    replicas_.clear();
    follow();
    use(policy, 9);
    for (int i = 0; i < 900; ++i) asked();
    pass(seconds(60));
    set_.advance(now_);
    route_.limits.max_ongoing = 1000;
    use(policy, 10);
    std::vector<std::shared_ptr<Replica>> calls;
    for (int i = 0; i < 910; ++i) calls.push_back(reserve());
    EXPECT_NEAR(at("r9").in_flight(), 10, 8) << policy;
    for (const auto& call : calls) set_.release(*call, now_);
    calls.clear();
    pass(seconds(10));
    set_.advance(now_);
    for (int i = 0; i < 1000; ++i) calls.push_back(reserve());
    EXPECT_NEAR(at("r9").in_flight(), 100, 10) << policy;
    for (const auto& call : calls) set_.release(*call, now_);
  }
}

TEST_F(Policies, AReplicaThatIsNewTakesAllWhereNobodyElseHasRoom) {
  route_.limits.max_ongoing = 4;
  use("power_of_two", 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(chosen(), "r0");
  follow(2);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(chosen(), "r1");
}

TEST_F(Policies, PromptsThatWaitInAnEngineDecideBetweenReplicasThatAreLoadedAlike) {
  for (const char* policy : {"least_loaded", "power_of_two"}) {
    use(policy, 2);
    elsewhere("r1", 0);
    report("r0", {.max_running = 64, .gateways = 1, .waiting_tokens = 100'000});
    for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "r1") << policy;
    elsewhere("r1", 1);
    EXPECT_EQ(asked(), "r0") << policy << ": they are less than a call";
  }
}

class Near : public Policies {
 protected:
  Near() {
    for (int i = 0; i < 12; ++i) {
      ReplicaRoute route = replica("r" + std::to_string(i), "mini");
      route.node = "n" + std::to_string(i);
      route.zone = i < 4 ? "z1" : "z2";
      replicas_.push_back(route);
    }
  }
  std::string asked_from(const GatewayPlace& place, const Traits& traits = {}) {
    ReplicaSet set(place, 1);
    set.follow(route_, replicas_, now_);
    const auto replica = set.reserve(traits, now_);
    return replica->id().value;
  }
};

TEST_F(Near, TheSameNodeThenTheSameZoneIsPreferred) {
  for (const char* policy : {"round_robin", "least_loaded", "power_of_two"}) {
    route_.selection_policy = policy;
    EXPECT_EQ(asked_from({"n7", "z2"}), "r7") << policy;
    const std::vector<ReplicaId> tried = {{"r1"}};
    const std::string id = asked_from({"n1", "z1"}, {.excluded = tried});
    EXPECT_TRUE(id == "r0" || id == "r2" || id == "r3") << policy << " " << id;
  }
}

TEST_F(Near, StickyRequestsStayInTheZoneAndAllItsGatewaysAgree) {
  for (const char* policy : {"session", "prefix_aware"}) {
    route_.selection_policy = policy;
    std::set<std::string> homes;
    for (uint64_t key = 1; key <= 40; ++key) {
      const std::vector<uint64_t> prefix = {mix(key)};
      const Traits traits = {.session = mix(key), .prefix = prefix};
      const std::string home = asked_from({"n1", "z1"}, traits);
      EXPECT_EQ(asked_from({"n3", "z1"}, traits), home) << policy;
      homes.insert(home);
      const std::string elsewhere = asked_from({"n1", "z3"}, traits);
      EXPECT_EQ(asked_from({"n7", ""}, traits), elsewhere) << policy << ": nobody is in its zone";
    }
    EXPECT_EQ(homes, (std::set<std::string>{"r0", "r1", "r2", "r3"})) << policy;
  }
}

TEST_F(Near, StickyRequestsLeaveTheZoneWhereItIsFull) {
  route_.selection_policy = "session";
  for (ReplicaRoute& route : replicas_) route.capacity = 1;
  ReplicaSet set({"n1", "z1"}, 1);
  set.follow(route_, replicas_, now_);
  std::set<std::string> homes;
  for (int i = 0; i < 12; ++i) {
    const auto replica = set.reserve({.session = mix(5)}, now_);
    ASSERT_NE(replica, nullptr) << i;
    homes.insert(replica->id().value);
  }
  EXPECT_EQ(homes.size(), 12U);
}

TEST_F(Near, AReplicaThatMovesToTheZoneTakesPartInIt) {
  route_.selection_policy = "session";
  for (ReplicaRoute& route : replicas_) route.zone = "z2";
  ReplicaSet set({"n1", "z1"}, 1);
  set.follow(route_, replicas_, now_);
  replicas_[7].zone = "z1";
  set.follow(route_, replicas_, now_);
  for (uint64_t key = 1; key <= 10; ++key) {
    const auto replica = set.reserve({.session = mix(key)}, now_);
    EXPECT_EQ(replica->id().value, "r7");
    set.release(*replica, now_);
  }
}

TEST_F(Near, TheAdapterCountsMoreThanThePlace) {
  replicas_[9].adapters = replicas_[2].adapters = {"pirate@1"};
  EXPECT_EQ(asked_from({"n7", "z2"}, {.adapter = "pirate@1"}), "r9");
  EXPECT_EQ(asked_from({"n7", "z1"}, {.adapter = "pirate@1"}), "r2");
}

TEST_F(Near, WhatIsNearIsNotLoadedFarAboveTheOthers) {
  for (ReplicaRoute& route : replicas_) route.capacity = 1000;
  ReplicaSet set({"n7", "z2"}, 1);
  set.follow(route_, replicas_, now_);
  for (int i = 0; i < 6000; ++i) set.reserve({}, now_);
  EXPECT_NEAR(set.find({"r7"})->in_flight(), 1.25 * 6000 / 12, 5);
}

}  // namespace
}  // namespace penstock::routing
