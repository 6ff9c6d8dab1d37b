#include "control_plane/route_subscription.h"

#include <gtest/gtest.h>

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
                                                            table_, clock_, capture_.log());
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
  EXPECT_GT(subscription->state().last_connected, base::SteadyTime{});
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
