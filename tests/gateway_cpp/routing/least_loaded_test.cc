#include "routing/least_loaded.h"

#include <gtest/gtest.h>

#include <set>

#include "snapshots.h"

namespace penstock::routing {
namespace {

const base::SteadyTime kNow{std::chrono::hours(1)};

ReplicaView view(std::uint32_t load) {
  return {.eligible = true, .down_marked = false, .holds_adapter = true, .load = load};
}

TEST(LeastLoaded, ChoosesTheFewestCalls) {
  const LeastLoaded policy;
  const std::vector<ReplicaView> replicas = {view(3), view(1), view(2)};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(policy.choose(replicas), 1U);
}

TEST(LeastLoaded, EqualOnesTakeTurns) {
  const LeastLoaded policy;
  const std::vector<ReplicaView> replicas = {view(0), view(0), view(0)};
  std::multiset<std::size_t> chosen;
  for (int i = 0; i < 9; ++i) chosen.insert(*policy.choose(replicas));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(chosen.count(i), 3U);
}

TEST(LeastLoaded, TakesOnlyEligibleOnes) {
  const LeastLoaded policy;
  std::vector<ReplicaView> replicas = {view(0), view(9)};
  replicas[0].eligible = false;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(policy.choose(replicas), 1U);
  replicas[1].eligible = false;
  EXPECT_FALSE(policy.choose(replicas).has_value());
  EXPECT_FALSE(policy.choose({}).has_value());
}

TEST(LeastLoaded, ADownMarkedReplicaIsTheLastResort) {
  const LeastLoaded policy;
  std::vector<ReplicaView> replicas = {view(0), view(9)};
  replicas[0].down_marked = true;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(policy.choose(replicas), 1U);
  replicas[1].eligible = false;
  EXPECT_EQ(policy.choose(replicas), 0U);
}

TEST(LeastLoaded, PrefersAReplicaThatHoldsTheAdapter) {
  const LeastLoaded policy;
  std::vector<ReplicaView> replicas = {view(0), view(5)};
  replicas[0].holds_adapter = false;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(policy.choose(replicas), 1U);
  replicas[1].eligible = false;
  EXPECT_EQ(policy.choose(replicas), 0U);
}

class Views : public testing::Test {
 protected:
  Views() {
    RouteTable table;
    table.replace({.version = 1,
                   .deployments = {deployment("mini", {{"pirate", "pirate@1"}},
                                              {.max_ongoing = 2,
                                               .max_queued = 0,
                                               .queue_deadline = {},
                                               .first_event_deadline = {}})},
                   .replicas = {replica("r1", "mini", ReplicaState::kReady, {"pirate@1"}),
                                replica("r2", "mini", ReplicaState::kReady),
                                replica("r3", "mini", ReplicaState::kStarting),
                                replica("r4", "mini", ReplicaState::kDraining)}});
    route_ = *table.current()->resolve("mini:pirate");
  }

  std::vector<ReplicaView> views(const std::vector<ReplicaId>& tried = {}) {
    std::vector<ReplicaView> out;
    view_replicas(route_, tried, kNow, out);
    return out;
  }

  ReplicaTracker& tracker(std::size_t i) { return *route_.deployment->replicas[i].tracker; }

  Route route_;
};

TEST_F(Views, OnlyReadyReplicasAreEligible) {
  const auto seen = views();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_TRUE(seen[0].eligible);
  EXPECT_TRUE(seen[1].eligible);
  EXPECT_FALSE(seen[2].eligible);
  EXPECT_FALSE(seen[3].eligible);
}

TEST_F(Views, TellWhoHoldsTheAdapter) {
  EXPECT_TRUE(views()[0].holds_adapter);
  EXPECT_FALSE(views()[1].holds_adapter);
  route_.adapter.clear();
  EXPECT_TRUE(views()[1].holds_adapter);
}

TEST_F(Views, ATriedReplicaIsOut) {
  EXPECT_FALSE(views({{"r1"}})[0].eligible);
  EXPECT_TRUE(views({{"r1"}})[1].eligible);
}

TEST_F(Views, AFullReplicaIsOut) {
  const InFlight one(route_.deployment->replicas[0].tracker);
  EXPECT_TRUE(views()[0].eligible);
  const InFlight two(route_.deployment->replicas[0].tracker);
  EXPECT_FALSE(views()[0].eligible);
}

TEST_F(Views, AReplicaThatSaysItDoesNotServeIsOut) {
  tracker(0).set_serving(ReplicaTracker::Serving::kNo);
  EXPECT_FALSE(views()[0].eligible);
  tracker(0).set_serving(ReplicaTracker::Serving::kYes);
  EXPECT_TRUE(views()[0].eligible);
}

TEST_F(Views, ShowDownMarksAndLoad) {
  tracker(1).mark_down(kNow + std::chrono::seconds(1));
  tracker(1).report(3, 4);
  const auto seen = views();
  EXPECT_TRUE(seen[1].down_marked);
  EXPECT_FALSE(seen[0].down_marked);
  EXPECT_EQ(seen[1].load, 7U);
}

}  // namespace
}  // namespace penstock::routing
