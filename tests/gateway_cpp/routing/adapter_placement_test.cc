// Which replica a request goes to whose adapter is not held, or only where there is no room.
#include <algorithm>
#include <map>
#include <set>

#include "set_fixture.h"

namespace penstock::routing {
namespace {

class Placement : public SetFixture, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr std::uint32_t kPlaces = 64;

  // Replicas r0..r(n-1) with four slots, all free.
  void serve(std::size_t n) {
    route_.selection_policy = GetParam();
    follow(n);
    for (std::size_t i = 0; i < n; ++i) tell("r" + std::to_string(i), {});
  }
  void tell(const std::string& id, std::vector<std::string> adapters, std::uint32_t slots = 4) {
    report(id, {.max_running = kPlaces, .adapters = std::move(adapters), .adapter_slots = slots});
  }
  Traits wants(std::string_view adapter) {
    return {.adapter = adapter, .session = random_.next(), .prefix = blocks_};
  }

  Random random_{3};
  std::vector<std::uint64_t> blocks_;
};

INSTANTIATE_TEST_SUITE_P(Each, Placement,
                         testing::Values("round_robin", "least_loaded", "power_of_two",
                                         "prefix_aware", "session"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Placement, ABurstForAColdAdapterComesToOneReplicaUpToHalfOfItsPlaces) {
  serve(20);
  std::map<std::string, int> counts;
  for (int i = 0; i < 32; ++i) ++counts[chosen(wants("pirate@1"))];
  EXPECT_EQ(counts.size(), 1U);
  for (int i = 0; i < 32; ++i) ++counts[chosen(wants("pirate@1"))];
  EXPECT_EQ(counts.size(), 2U) << "then a second one loads it, and no more";
}

TEST_P(Placement, AllGatewaysAgreeOnIt) {
  for (std::size_t n : {3U, 8U, 100U}) {
    serve(n);
    std::vector<ReplicaRoute> others = replicas_;
    std::ranges::reverse(others);  // whatever the order in which they came
    ReplicaSet elsewhere({}, 77);
    elsewhere.follow(route_, others, now_);
    for (const auto& replica : elsewhere.replicas()) {
      elsewhere.report(*replica, {.max_running = kPlaces, .adapter_slots = 4}, now_);
    }
    for (int i = 0; i < 20; ++i) {
      const std::string adapter = "pirate@" + std::to_string(i);
      const auto there = elsewhere.reserve({.adapter = adapter, .session = 5}, now_);
      EXPECT_EQ(there->id().value, asked(wants(adapter)));
      elsewhere.release(*there, now_);
    }
  }
}

TEST_P(Placement, DifferentAdaptersAreSpread) {
  serve(10);
  std::map<std::string, int> counts;
  for (int i = 0; i < 200; ++i) {
    const std::string adapter = "pirate@" + std::to_string(i);
    ++counts[asked(wants(adapter))];
  }
  EXPECT_GE(counts.size(), 9U);
  for (const auto& [id, count] : counts) EXPECT_LE(count, 60) << id;
}

TEST_P(Placement, WhoHasAFreeSlotAndTheFewestAdaptersLoadsIt) {
  serve(4);
  tell("r0", {"a@1", "b@1"});
  tell("r1", {"a@1"});
  tell("r2", {"a@1", "b@1", "c@1"});
  tell("r3", {}, 0);
  std::vector<ReplicaId> tried;
  for (const char* next : {"r1", "r0", "r2", "r3"}) {
    EXPECT_EQ(asked({.adapter = "pirate@1", .session = 7, .excluded = tried}), next);
    tried.push_back({next});
  }
}

TEST_P(Placement, OneThatHasToMakeRoomComesAfterThoseThatHaveSome) {
  serve(3);
  tell("r0", {"a@1"}, 1);
  tell("r1", {"a@1", "b@1", "c@1"}, 4);
  tell("r2", {"b@1"}, 1);
  EXPECT_EQ(asked(wants("pirate@1")), "r1");
  tell("r1", {"a@1", "b@1", "c@1", "d@1"}, 4);
  std::set<std::string> full;
  for (int i = 0; i < 10; ++i) full.insert(asked(wants("pirate@1")));
  EXPECT_EQ(full.size(), 1U) << "of those that are full, one is to make room";
}

TEST_P(Placement, AReplicaThatTakesNoAdaptersIsNotAskedWhileAnyOtherIs) {
  serve(20);
  for (int i = 0; i < 19; ++i) tell("r" + std::to_string(i), {}, 0);
  std::set<std::string> ids;
  for (std::uint32_t i = 0; i < kPlaces; ++i) ids.insert(chosen(wants("pirate@1")));
  EXPECT_EQ(ids, std::set<std::string>{"r19"}) << "however much it has to do";
  ids.clear();
  for (int i = 0; i < 40; ++i) ids.insert(chosen({.session = random_.next()}));
  EXPECT_FALSE(ids.contains("r19")) << "which has no place left";
  EXPECT_NE(chosen(wants("pirate@1")), "") << "it says itself that it takes none";
}

TEST_P(Placement, OnesThatHoldItGoBeforeAllAndAnotherIsAskedToWhenTheyHaveTooMuch) {
  serve(10);
  tell("r4", {"pirate@1", "a@1", "b@1", "c@1"});
  for (std::uint32_t i = 0; i < kPlaces / 8; ++i) EXPECT_EQ(chosen(wants("pirate@1")), "r4");
  std::set<std::string> ids;
  for (int i = 0; i < 30; ++i) ids.insert(chosen(wants("pirate@1")));
  ids.erase("r4");
  EXPECT_EQ(ids.size(), 1U);
  tell(*ids.begin(), {"pirate@1"});
  EXPECT_TRUE(at(*ids.begin()).holds("pirate@1"));
}

TEST_P(Placement, WhereNobodySaysAnythingOfSlotsAnybodyWillDo) {
  serve(5);
  for (int i = 0; i < 5; ++i) tell("r" + std::to_string(i), {}, 0);
  std::set<std::string> ids;
  for (int i = 0; i < 60; ++i) ids.insert(chosen(wants("pirate@1")));
  EXPECT_GT(ids.size(), 2U);
}

TEST_P(Placement, ReplicasThatLeaveAreForgotten) {
  serve(6);
  const std::string first = asked(wants("pirate@1"));
  std::erase_if(replicas_, [&](const ReplicaRoute& route) { return route.id.value == first; });
  follow();
  const std::string second = asked(wants("pirate@1"));
  EXPECT_NE(second, "");
  EXPECT_NE(second, first);
}

TEST_P(Placement, AKnownPrefixIsNoReasonToLoadItTwice) {
  serve(6);
  blocks_ = {1, 2, 3};
  const std::string first = asked(wants("pirate@1"));
  const std::string other = first == "r0" ? "r1" : "r0";
  tell(other, {"pirate@1"});
  EXPECT_EQ(asked(wants("pirate@1")), other) << "who computed it gave the adapter up";
}

}  // namespace
}  // namespace penstock::routing
