// Places that shadows have as long as no request needs them.
#include "dispatch/shadow_place.h"

#include <gtest/gtest.h>

#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

struct Shadow {
  ShadowPlace place;
  std::shared_ptr<CountingWaker> waker = std::make_shared<CountingWaker>();
};

class ShadowPlaceTest : public DispatcherTest {
 protected:
  bool place(Shadow& shadow) {
    return routes_.of("mini").place_shadow(shadow.place, {}, {}, shadow.waker);
  }
  // Load of the replica as it reports it, other gateways' calls included.
  void report(routing::LoadReport load) {
    auto& replica = routes_.replica("mini", 0);
    routes_.of("mini").report(replica, load);
  }
};

TEST_F(ShadowPlaceTest, IsOneThatNobodyHas) {
  limit(2);
  Shadow shadow;
  ASSERT_TRUE(place(shadow));
  EXPECT_EQ(shadow.place.replica()->id().value, "r1");
  EXPECT_EQ(in_flight(), 1U);
  shadow.place.release();
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(ShadowPlaceTest, IsNoneWhereAllAreTaken) {
  limit(1);
  Asking first;
  admit(first);
  Shadow shadow;
  EXPECT_FALSE(place(shadow));
  EXPECT_EQ(shadow.place.replica(), nullptr);
}

TEST_F(ShadowPlaceTest, IsNoneWhileAnybodyWaits) {
  limit(1);
  Asking first;
  Asking second;
  admit(first);
  admit(second);
  Shadow shadow;
  EXPECT_FALSE(place(shadow));
  first.turn.leave();
  EXPECT_TRUE(second.turn.has_place());
  EXPECT_FALSE(place(shadow));
}

TEST_F(ShadowPlaceTest, IsARequestsAtOnceThatWouldHaveToWait) {
  limit(1);
  Shadow shadow;
  ASSERT_TRUE(place(shadow));
  Asking asking;
  const Admission outcome = admit(asking);
  EXPECT_FALSE(outcome.refusal);
  EXPECT_EQ(outcome.turn.estimated_wait.count(), 0);
  EXPECT_TRUE(asking.turn.has_place());
  EXPECT_TRUE(shadow.place.was_given_up());
  EXPECT_EQ(shadow.waker->woken, 1);
  EXPECT_EQ(in_flight(), 1U);
  shadow.place.release();  // which gives nothing back a second time
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(ShadowPlaceTest, GivesUpTheOneThatBeganLast) {
  limit(2);
  Shadow first;
  Shadow second;
  ASSERT_TRUE(place(first));
  ASSERT_TRUE(place(second));
  Asking asking;
  admit(asking);
  EXPECT_FALSE(first.place.was_given_up());
  EXPECT_TRUE(second.place.was_given_up());
}

TEST_F(ShadowPlaceTest, StaysWhereRequestsHaveRoomBesides) {
  limit(2);
  Shadow shadow;
  ASSERT_TRUE(place(shadow));
  Asking asking;
  admit(asking);
  EXPECT_TRUE(asking.turn.has_place());
  EXPECT_FALSE(shadow.place.was_given_up());
}

TEST_F(ShadowPlaceTest, IsARequestsThatIsTriedAgain) {
  limits_.max_ongoing = 1;
  announce({"r1", "r2"});
  Asking asking;
  admit(asking);
  const auto tried = asking.turn.take().replica()->id();
  Shadow shadow;
  Shadow other;
  ASSERT_TRUE(place(shadow));
  ASSERT_TRUE(place(other));
  EXPECT_TRUE(
      routes_.of("mini").again(asking.turn, asking.ask, {tried}, [&] { return asking.waker; }));
  EXPECT_TRUE(asking.turn.has_place());
}

TEST_F(ShadowPlaceTest, IsLeftToOtherGatewaysThatShareTheReplica) {
  limit(2);
  Shadow shadow;
  ASSERT_TRUE(place(shadow));
  report({.running = 1, .max_running = 8, .calls = 1, .gateways = 1});
  EXPECT_FALSE(shadow.place.was_given_up());
  report({.running = 2, .max_running = 8, .calls = 2, .calls_elsewhere = 1, .gateways = 2});
  EXPECT_TRUE(shadow.place.was_given_up());
  EXPECT_EQ(shadow.waker->woken, 1);
  // Nor is the last one taken then.
  Shadow another;
  EXPECT_FALSE(place(another));
}

TEST_F(ShadowPlaceTest, IsGivenUpWhereMemoryRunsShort) {
  limit(2);
  Shadow shadow;
  ASSERT_TRUE(place(shadow));
  report({.running = 1, .max_running = 8, .kv_usage = 0.99F, .calls = 1, .gateways = 1});
  EXPECT_TRUE(shadow.place.was_given_up());
}

}  // namespace
}  // namespace penstock::dispatch
