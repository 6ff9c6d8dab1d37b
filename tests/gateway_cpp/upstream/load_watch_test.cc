#include "upstream/load_watch.h"

#include <gtest/gtest.h>

#include "dispatch/believed_routes.h"
#include "event_loop.h"
#include "fake_replica.h"
#include "fixed_clock.h"
#include "log_capture.h"
#include "routing/snapshots.h"
#include "upstream/replica_pool.h"

namespace penstock::upstream {
namespace {

using std::chrono::seconds;

// A thread's pool, which watches all replicas of the routes.
class LoadWatchTest : public testing::Test {
 protected:
  LoadWatchTest() { announce(1); }

  void announce(uint64_t version) {
    auto route = routing::replica("r1", "mini");
    route.address = replica_.address();
    routes_.replace(
        {.version = version, .deployments = {routing::deployment("mini")}, .replicas = {route}});
  }

  void say(v1::ReplicaState state, uint32_t running) {
    v1::ServerFrame frame;
    frame.mutable_load()->set_state(state);
    frame.mutable_load()->set_running(running);
    EXPECT_TRUE(replica_.send(frame));
  }
  bool is_watched(size_t sessions = 1) {
    return loop_.run_until([&] {
      clock_.advance(std::chrono::milliseconds(50));
      pool_.tick();
      return replica_.sessions() >= sessions && !replica_.frames().empty();
    });
  }
  bool hears(uint32_t running) {
    return loop_.run_until(
        [&] { return routes_.replica("mini", 0).reported().running == running; });
  }
  bool is_down() { return routes_.is_down("mini", "r1"); }

  FakeReplica replica_;
  test::EventLoop loop_;
  test::FixedClock clock_;
  dispatch::BelievedRoutes routes_{clock_};
  base::Metrics all_metrics_;
  base::MetricsShard& metrics_ = all_metrics_.add_shard();
  test::LogCapture log_;
  runtime::SendBatch sends_;
  ReplicaPool pool_{loop_.io(), sends_,
                    clock_,     {.credit_bytes = 0, .token = "", .gateway_id = "gw-1"},
                    {},         routes_.dispatchers(),
                    metrics_,   log_.log()};
};

TEST_F(LoadWatchTest, GreetsTheReplicaAndAsksForItsLoad) {
  ASSERT_TRUE(is_watched());
  const auto hello = replica_.frames().at(0).hello();
  EXPECT_EQ(hello.gateway_id(), "gw-1");
  EXPECT_TRUE(hello.watch_load());
}

TEST_F(LoadWatchTest, TellsTheDeploymentWhatTheReplicaHasToDo) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 5);
  EXPECT_TRUE(hears(5));
  EXPECT_TRUE(routes_.replica("mini", 0).reported().serving);
  say(v1::REPLICA_STATE_DRAINING, 2);
  EXPECT_TRUE(hears(2));
  EXPECT_EQ(routes_.of("mini").standing().usable, 0U) << "it drains, whatever the routes say";
}

TEST_F(LoadWatchTest, TellsWhichReplicasMayContinueEachOthersStreams) {
  ASSERT_TRUE(is_watched());
  v1::ServerFrame frame;
  frame.mutable_load()->set_state(v1::REPLICA_STATE_READY);
  frame.mutable_load()->set_running(3);
  frame.mutable_load()->set_config_hash("c0ffee");
  frame.mutable_load()->set_adapter_slots(4);
  ASSERT_TRUE(replica_.send(frame));
  ASSERT_TRUE(hears(3));
  EXPECT_EQ(routes_.replica("mini", 0).reported().config_hash, "c0ffee");
  EXPECT_EQ(routes_.replica("mini", 0).reported().adapter_slots, 4U);
}

TEST_F(LoadWatchTest, DoubtsADeadReplicaUntilItSpeaksAgain) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(hears(1));
  replica_.kill();
  EXPECT_TRUE(loop_.run_until([&] { return is_down(); }));
  replica_.start_again();
  ASSERT_TRUE(is_watched(2));
  say(v1::REPLICA_STATE_READY, 2);
  ASSERT_TRUE(hears(2));
  EXPECT_FALSE(is_down());
}

TEST_F(LoadWatchTest, TakesAReplicaThatNobodyReachesForOneThatServesNobody) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(hears(1));
  replica_.kill();
  EXPECT_TRUE(loop_.run_until([&] {
    clock_.advance(std::chrono::milliseconds(50));
    pool_.tick();
    return !routes_.replica("mini", 0).reported().serving;
  }));
  replica_.start_again();
  ASSERT_TRUE(is_watched(2));
  say(v1::REPLICA_STATE_READY, 2);
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(routes_.of("mini").standing().usable, 1U);
}

TEST_F(LoadWatchTest, DoesNotTakeALoadMessageForAGoodAnswer) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(hears(1));
  routes_.of("mini").note_failure(routes_.replica("mini", 0), routing::Failure::kLost);
  say(v1::REPLICA_STATE_READY, 2);
  ASSERT_TRUE(hears(2));
  EXPECT_TRUE(is_down()) << "a replica that fails its calls still tells its load";
}

TEST_F(LoadWatchTest, DoubtsAReplicaThatFallsSilent) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 1);
  ASSERT_TRUE(hears(1));
  clock_.advance(seconds(4));
  pool_.tick();
  EXPECT_FALSE(is_down());
  clock_.advance(seconds(2));
  pool_.tick();
  EXPECT_TRUE(is_down());
}

TEST_F(LoadWatchTest, ForgetsAReplicaThatLeftTheRoutes) {
  ASSERT_TRUE(is_watched());
  say(v1::REPLICA_STATE_READY, 3);
  ASSERT_TRUE(hears(3));
  routes_.replace({.version = 2, .deployments = {routing::deployment("mini")}, .replicas = {}});
  pool_.tick();
  pool_.sweep();
  EXPECT_EQ(pool_.sessions(), 0U);
}

}  // namespace
}  // namespace penstock::upstream
