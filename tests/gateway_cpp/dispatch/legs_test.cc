// What a router program has engines do: places that move, and places of legs.
#include <gtest/gtest.h>

#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

class LegsTest : public DispatcherTest {
 protected:
  LegsTest() {
    limits_.max_ongoing = 1;
    announce({"r1", "r2"});
  }
  Dispatcher& dispatcher() { return routes_.of("mini"); }
  static std::string other_than(const Place& place) {
    return place.replica()->id().value == "r1" ? "r2" : "r1";
  }
};

TEST_F(LegsTest, APlaceGoesToTheReplicaThatWasDecided) {
  Asking asking;
  admit(asking);
  Place place = asking.turn.take();
  const std::string before = place.replica()->id().value;
  const std::string there = other_than(place);
  ASSERT_TRUE(dispatcher().move(place, {there}));
  EXPECT_EQ(place.replica()->id().value, there);
  Asking next;
  admit(next);
  EXPECT_EQ(next.turn.take().replica()->id().value, before);
}

TEST_F(LegsTest, APlaceStaysWhereTheOtherReplicaIsFull) {
  Asking asking;
  admit(asking);
  Place place = asking.turn.take();
  const std::string before = place.replica()->id().value;
  const LegPlace leg = dispatcher().place_leg({other_than(place)});
  ASSERT_TRUE(leg);
  EXPECT_FALSE(dispatcher().move(place, {other_than(place)}));
  EXPECT_EQ(place.replica()->id().value, before);
}

TEST_F(LegsTest, ThePlaceOfALegGoesToWhoWaits) {
  LegPlace first = dispatcher().place_leg({"r1"});
  LegPlace second = dispatcher().place_leg({"r2"});
  EXPECT_FALSE(dispatcher().place_leg({"r2"}));
  Asking asking;
  admit(asking);
  ASSERT_FALSE(asking.turn.has_place());
  second.release();
  EXPECT_EQ(asking.waker->woken, 1);
  EXPECT_EQ(asking.turn.take().replica()->id().value, "r2");
}

TEST_F(LegsTest, AShadowGivesWayToALeg) {
  ShadowPlace shadow;
  const auto waker = std::make_shared<CountingWaker>();
  ASSERT_TRUE(dispatcher().place_shadow(shadow, {}, {}, waker));
  const std::string there = shadow.replica()->id().value;
  EXPECT_TRUE(dispatcher().place_leg({there}));
  EXPECT_TRUE(shadow.was_given_up());
  EXPECT_EQ(waker->woken, 1);
}

TEST_F(LegsTest, TellsOfEnginesOfOneTemplateThatNothingSpeaksAgainst) {
  auto& one = routes_.replica("mini", 0);
  dispatcher().report(one, {.running = 3, .waiting = 1, .waiting_tokens = 70});
  const LegPlace leg = dispatcher().place_leg({"r1"});
  const auto engines = dispatcher().engines_like(one);
  ASSERT_EQ(engines.size(), 2U);
  EXPECT_EQ(engines[0].running, 3U);
  EXPECT_EQ(engines[0].waiting_tokens, 70U);
  EXPECT_EQ(engines[0].places_left, 0U);
  EXPECT_EQ(engines[0].generating, 0U);
  EXPECT_EQ(engines[1].places_left, 1U);
  dispatcher().note_failure(routes_.replica("mini", 1), routing::Failure::kLost);
  EXPECT_EQ(dispatcher().engines_like(one).size(), 1U);
  EXPECT_FALSE(dispatcher().is_sound(routes_.replica("mini", 1)));
}

}  // namespace
}  // namespace penstock::dispatch
