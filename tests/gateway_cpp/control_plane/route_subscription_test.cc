#include "control_plane/route_subscription.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "fake_head.h"
#include "log_capture.h"
#include "temporary_directory.h"

namespace penstock::control_plane {
namespace {

using std::chrono::milliseconds;

// Polls: the subscription has no hook that only tests would use.
bool becomes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class RouteSubscriptionTest : public testing::Test {
 protected:
  std::unique_ptr<RouteSubscription> subscribe(const std::string& address) {
    auto subscription = std::make_unique<RouteSubscription>("gw-1", connect_to_head(address), file_,
                                                            followers_, clock_, capture_.log());
    subscription->start();
    return subscription;
  }

  bool serves(const std::string& model) const {
    return table_.current()->resolve(model).has_value();
  }

  test::TemporaryDirectory directory_;
  test::LogCapture capture_;
  base::SystemClock clock_;
  SnapshotFile file_{directory_.path().string(), "gw-1", capture_.log()};
  routing::RouteTable table_;
  admission::Suspects suspects_{"gw-1", std::chrono::minutes(10)};
  admission::CanaryBook canaries_;
  dispatch::Dispatchers dispatchers_{clock_, {}, 1};
  admission::TenantTable tenants_;
  std::atomic<std::uint64_t> replaced_with_{0};  // the version that was in force when it was told
  const Followers followers_{.routes = table_,
                             .dispatchers = dispatchers_,
                             .tenants = tenants_,
                             .suspects = suspects_,
                             .canaries = canaries_,
                             .replaced = [this] { replaced_with_ = table_.current()->version(); }};
};

TEST_F(RouteSubscriptionTest, SwapsInEachSnapshot) {
  FakeHead head;
  head.publish(snapshot_of(1, "mini"));
  const auto subscription = subscribe(head.address());
  EXPECT_TRUE(becomes_true([&] { return serves("mini:pirate"); }));
  head.publish(snapshot_of(2, "maxi"));
  EXPECT_TRUE(becomes_true([&] { return serves("maxi"); }));
  EXPECT_FALSE(serves("mini"));
  EXPECT_TRUE(becomes_true([&] { return subscription->state().version == 2; }));
  EXPECT_TRUE(subscription->state().connected);
  EXPECT_EQ(subscription->state().source, RouteSource::kControl);
}

TEST_F(RouteSubscriptionTest, SaysThatOtherRoutesAreInForceOnceTheyAre) {
  FakeHead head;
  head.publish(snapshot_of(1, "mini"));
  const auto subscription = subscribe(head.address());
  EXPECT_TRUE(becomes_true([&] { return replaced_with_ == 1; }));
  head.publish(snapshot_of(2, "maxi"));
  EXPECT_TRUE(becomes_true([&] { return replaced_with_ == 2; }));
}

TEST_F(RouteSubscriptionTest, TellsTheHeadWhoAsksAndWhatItHas) {
  file_.save(snapshot_of(41, "mini"));
  FakeHead head;
  const auto subscription = subscribe(head.address());
  ASSERT_TRUE(head.wait_for([&] { return !head.watches.empty(); }));
  subscription->stop();
  EXPECT_EQ(head.watches[0].gateway_id(), "gw-1");
  EXPECT_EQ(head.watches[0].have_version(), 41U);
}

TEST_F(RouteSubscriptionTest, KeepsTheLastRoutesWhileTheHeadIsAway) {
  FakeHead head;
  head.publish(snapshot_of(1, "mini"));
  const auto subscription = subscribe(head.address());
  ASSERT_TRUE(becomes_true([&] { return serves("mini"); }));
  head.kill();
  ASSERT_TRUE(becomes_true([&] { return !subscription->state().connected; }));
  EXPECT_TRUE(serves("mini"));
  EXPECT_EQ(subscription->state().source, RouteSource::kControl);
}

TEST_F(RouteSubscriptionTest, ComesBackWhenTheHeadDoes) {
  FakeHead head;
  head.publish(snapshot_of(1, "mini"));
  const auto subscription = subscribe(head.address());
  ASSERT_TRUE(becomes_true([&] { return serves("mini"); }));
  head.kill();
  ASSERT_TRUE(becomes_true([&] { return !subscription->state().connected; }));
  head.publish(snapshot_of(2, "maxi"));
  head.start_again();
  EXPECT_TRUE(becomes_true([&] { return serves("maxi"); }));
  EXPECT_TRUE(becomes_true([&] { return subscription->state().connected; }));
}

TEST_F(RouteSubscriptionTest, ServesFromDiskBeforeAHeadAnswers) {
  file_.save(snapshot_of(5, "mini"));
  const auto subscription = subscribe("127.0.0.1:1");
  EXPECT_TRUE(serves("mini"));
  EXPECT_EQ(subscription->state().source, RouteSource::kDisk);
  EXPECT_EQ(subscription->state().version, 5U);
  EXPECT_FALSE(subscription->state().connected);
}

TEST_F(RouteSubscriptionTest, KeepsWhatItHearsOnDisk) {
  FakeHead head;
  head.publish(snapshot_of(6, "mini"));
  const auto subscription = subscribe(head.address());
  EXPECT_TRUE(becomes_true([&] {
    const auto kept = file_.load();
    return kept.has_value() && kept->version() == 6;
  }));
}

TEST_F(RouteSubscriptionTest, RefusesAnOlderSnapshotOnceAndKeepsItsRoutes) {
  auto kept = snapshot_of(9, "mini");
  kept.mutable_stamp()->set_cluster_id("ours");
  kept.mutable_stamp()->set_epoch(1);
  kept.mutable_stamp()->set_revision(5);
  file_.save(kept);
  FakeHead head;
  auto foreign = snapshot_of(10, "maxi");
  foreign.mutable_stamp()->set_cluster_id("theirs");
  foreign.mutable_stamp()->set_epoch(1);
  head.publish(foreign);
  const auto subscription = subscribe(head.address());
  std::string log;
  const auto told = [&] {
    log += capture_.text();
    return log.find("a route snapshot is refused") != std::string::npos;
  };
  EXPECT_TRUE(becomes_true(told));
  EXPECT_TRUE(serves("mini"));
  kept.set_version(11);
  kept.mutable_deployments(0)->set_name("next");
  head.publish(kept);
  EXPECT_TRUE(becomes_true([&] { return serves("next"); }));
  EXPECT_EQ(subscription->state().stamp.cluster_id(), "ours");
}

TEST_F(RouteSubscriptionTest, HearsOfSuspectsAndOfTheirRelease) {
  FakeHead head;
  auto snapshot = snapshot_of(1, "mini");
  auto& suspect = *snapshot.add_suspects();
  suspect.set_fingerprint(std::string(32, 'f'));
  suspect.set_until_ms(4'000'000'000'000);
  suspect.add_deaths()->set_replica_id("r1");
  head.publish(snapshot);
  const auto subscription = subscribe(head.address());
  EXPECT_TRUE(becomes_true([&] { return !suspects_.empty(); }));
  head.publish(snapshot_of(2, "mini"));
  EXPECT_TRUE(becomes_true([&] { return suspects_.empty(); }));
}

TEST_F(RouteSubscriptionTest, ProvesToTheHeadWhoItIs) {
  FakeHead head;
  RouteSubscription subscription("gw-1", connect_to_head(head.address(), "secret"), file_,
                                 followers_, clock_, capture_.log());
  subscription.start();
  ASSERT_TRUE(head.wait_for([&] { return !head.watches.empty(); }));
  subscription.stop();
  EXPECT_EQ(head.authorization, "Bearer secret");
}

TEST_F(RouteSubscriptionTest, WithoutAHeadOnlyTheFileCounts) {
  const auto subscription = subscribe("");
  EXPECT_FALSE(table_.current()->known());
  EXPECT_EQ(subscription->state().source, RouteSource::kNone);
}

TEST_F(RouteSubscriptionTest, StopsAtOnceWhateverItIsDoing) {
  FakeHead head;
  for (const std::string& address : {head.address(), std::string("127.0.0.1:1")}) {
    const auto subscription = subscribe(address);
    const auto began = std::chrono::steady_clock::now();
    subscription->stop();
    subscription->stop();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  }
}

}  // namespace
}  // namespace penstock::control_plane
