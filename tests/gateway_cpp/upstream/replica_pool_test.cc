#include "upstream/replica_pool.h"

#include <gtest/gtest.h>

#include "dispatch/believed_routes.h"
#include "event_loop.h"
#include "fake_replica.h"
#include "fixed_clock.h"
#include "log_capture.h"
#include "raw_peer.h"
#include "runtime/signal.h"

namespace penstock::upstream {
namespace {

class ReplicaPoolTest : public testing::Test {
 protected:
  std::unique_ptr<Call> open(runtime::Signal& news) {
    return pool_.open({"r1", replica_.address()}, CallRequest(), news, nullptr);
  }

  FakeReplica replica_;
  test::EventLoop loop_;
  test::FixedClock clock_;
  dispatch::BelievedRoutes routes_{clock_};
  base::Metrics all_metrics_;
  base::MetricsShard& metrics_ = all_metrics_.add_shard();
  test::LogCapture log_;
  runtime::SendBatch sends_;
  ReplicaPool pool_{loop_.io(), sends_,    clock_, {}, {}, routes_.dispatchers(),
                    metrics_,   log_.log()};
  runtime::Signal news_;
};

TEST_F(ReplicaPoolTest, UsesOneSessionForAllCallsToAReplica) {
  runtime::Signal more_news;
  const auto first = open(news_);
  const auto second = open(more_news);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  EXPECT_EQ(replica_.sessions(), 1U);
  EXPECT_EQ(metrics_.sessions.value(), 1);
}

TEST_F(ReplicaPoolTest, OpensANewSessionAfterTheReplicaCameBack) {
  auto call = open(news_);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.starts().empty(); }));
  replica_.kill();
  ASSERT_TRUE(loop_.run_until([&] { return call->failed(); }));
  replica_.start_again();
  clock_.advance(std::chrono::seconds(2));
  runtime::Signal more_news;
  const auto again = open(more_news);
  ASSERT_TRUE(loop_.run_until([&] { return replica_.starts().size() == 2; }));
  EXPECT_FALSE(again->failed());
}

TEST_F(ReplicaPoolTest, FailsCallsAtOnceWithinTheBackoff) {
  replica_.kill();
  const auto first = open(news_);
  ASSERT_TRUE(loop_.run_until([&] { return first->failed(); }));
  runtime::Signal more_news;
  const auto second = open(more_news);
  EXPECT_TRUE(second->failed());
  clock_.advance(std::chrono::seconds(2));
  runtime::Signal last_news;
  const auto third = open(last_news);
  EXPECT_FALSE(third->failed());
}

TEST_F(ReplicaPoolTest, OpensANewSessionBesideOneThatGoesAway) {
  RawPeer peer(loop_.io());
  const std::string where = peer.address();
  const ReplicaAddress address{"r1", where};
  const auto running = pool_.open(address, CallRequest(), news_, nullptr);
  ASSERT_TRUE(loop_.run_until([&] {
    peer.talk();
    return !peer.http2.body.empty();
  }));
  peer.say(peer.http2.go_away(1));
  runtime::Signal more_news;
  ASSERT_TRUE(loop_.run_until([&] {
    clock_.advance(std::chrono::seconds(2));
    const auto next = pool_.open(address, CallRequest(), more_news, nullptr);
    return peer.accepted_another();
  }));
  EXPECT_FALSE(running->failed()) << "what it has is finished";
}

TEST_F(ReplicaPoolTest, DropsTheSessionOfAReplicaThatLeftOnceItIsIdle) {
  auto call = open(news_);
  ASSERT_TRUE(loop_.run_until([&] { return !replica_.starts().empty(); }));
  routes_.replace({.version = 1, .deployments = {}, .replicas = {}});
  pool_.tick();
  pool_.sweep();
  EXPECT_EQ(pool_.sessions(), 1U) << "a call still runs";
  call.reset();
  pool_.sweep();
  EXPECT_EQ(pool_.sessions(), 1U) << "the replica has not answered the cancel yet";
  for (int second = 0; second < 12; ++second) pool_.sweep();
  EXPECT_EQ(pool_.sessions(), 0U) << "and never will";
  EXPECT_EQ(metrics_.sessions.value(), 0);
  loop_.poll();
  pool_.sweep();
}

}  // namespace
}  // namespace penstock::upstream
