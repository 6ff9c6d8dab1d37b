#include "upstream/load_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "fake_replica.h"
#include "log_capture.h"
#include "routing/snapshots.h"

namespace penstock::upstream {
namespace {

class LoadWatchTest : public testing::Test {
 protected:
  LoadWatchTest() { announce(replica_.address()); }

  void announce(const std::string& address) {
    auto route = routing::replica("r1", "mini");
    route.address = address;
    table_.replace(
        {.version = 1, .deployments = {routing::deployment("mini")}, .replicas = {route}});
  }

  routing::ReplicaTracker& tracker() {
    return *table_.current()->deployments().at("mini")->replicas.at(0).tracker;
  }

  void say(v1::ReplicaState state, uint32_t running) {
    v1::Load load;
    load.set_state(state);
    load.set_running(running);
    replica_.set_load(load);
  }

  template <class Done>
  bool tick_until(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      watch_.tick();
      std::this_thread::yield();
    }
    return true;
  }

  bool is_down() { return tracker().is_down(clock_.steady_now()); }

  FakeReplica replica_;
  routing::RouteTable table_;
  base::SystemClock clock_;
  test::LogCapture log_;
  LoadWatch watch_{"gw-1", "", table_, clock_, log_.log()};
};

TEST_F(LoadWatchTest, TellsTheTrackerWhatTheReplicaHasToDo) {
  say(v1::REPLICA_STATE_READY, 5);
  EXPECT_TRUE(tick_until([&] { return tracker().load() == 5; }));
  EXPECT_TRUE(tracker().is_serving());
  say(v1::REPLICA_STATE_READY, 2);
  EXPECT_TRUE(tick_until([&] { return tracker().load() == 2; }));
}

TEST_F(LoadWatchTest, TakesADrainingReplicaOutBeforeTheRoutesDo) {
  say(v1::REPLICA_STATE_DRAINING, 1);
  EXPECT_TRUE(tick_until([&] { return !tracker().is_serving(); }));
  say(v1::REPLICA_STATE_READY, 1);
  EXPECT_TRUE(tick_until([&] { return tracker().is_serving(); }));
}

TEST_F(LoadWatchTest, MarksADeadReplicaDownAndUpAgainWhenItIsBack) {
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(tick_until([&] { return tracker().load() == 1; }));
  replica_.kill();
  EXPECT_TRUE(tick_until([&] { return is_down(); }));
  replica_.start_again();
  EXPECT_TRUE(tick_until([&] { return !is_down(); }));
}

TEST_F(LoadWatchTest, DoesNotTakeALoadMessageForAGoodAnswer) {
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(tick_until([&] { return tracker().load() == 1; }));
  tracker().mark_down(clock_.steady_now() + std::chrono::minutes(1));
  say(v1::REPLICA_STATE_READY, 2);
  ASSERT_TRUE(tick_until([&] { return tracker().load() == 2; }));
  EXPECT_TRUE(is_down()) << "a replica that fails its calls still tells its load";
}

TEST_F(LoadWatchTest, ForgetsAReplicaThatLeftTheRoutes) {
  say(v1::REPLICA_STATE_READY, 3);
  ASSERT_TRUE(tick_until([&] { return tracker().load() == 3; }));
  const auto old = table_.current()->deployments().at("mini")->replicas.at(0).tracker;
  table_.replace({.version = 2, .deployments = {routing::deployment("mini")}, .replicas = {}});
  watch_.tick();
  replica_.kill();
  watch_.tick();
  EXPECT_FALSE(old->is_down(clock_.steady_now())) << "nobody watches it any more";
}

}  // namespace
}  // namespace penstock::upstream
