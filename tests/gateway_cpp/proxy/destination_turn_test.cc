// What a request has where it is: a turn, a place, or nothing.
#include <gtest/gtest.h>

#include "dispatch/dispatcher_fixture.h"
#include "proxy/destination.h"

namespace penstock::proxy {
namespace {

class DestinationTurnTest : public dispatch::DispatcherTest {
 protected:
  void queue() {
    at_.dispatcher = routes_.dispatchers().current()->at("mini");
    at_.wanted.estimate = {.prompt = 100, .completion = 25};
    const admission::DeploymentAsk asked{.deployment = "mini", .limits = limits_};
    ASSERT_FALSE(at_.dispatcher->admit(at_.turn(), at_.wanted, asked, [&] { return waker_; })
                     .refusal.has_value());
    at_.queued();
  }

  std::shared_ptr<dispatch::CountingWaker> waker_ = std::make_shared<dispatch::CountingWaker>();
  Destination at_{nullptr};
};

TEST_F(DestinationTurnTest, TakesThePlaceThatItWasGivenAndGivesItToItsCall) {
  queue();
  EXPECT_TRUE(at_.was_given_place());
  EXPECT_EQ(in_flight(), 1U);
  ASSERT_TRUE(at_.take_place());
  EXPECT_FALSE(at_.was_given_place()) << "it has taken it";
  EXPECT_EQ(at_.replica()->id().value, "r1");
  {
    const dispatch::Place place = at_.give_place();
    EXPECT_FALSE(at_.has_place());
    EXPECT_FALSE(at_.take_place()) << "it waits no more";
    EXPECT_EQ(in_flight(), 1U);
  }
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(DestinationTurnTest, HasNothingWhereItsTimeIsOverWithoutAPlace) {
  limit(1);
  dispatch::Asking other;
  ASSERT_FALSE(admit(other).refusal.has_value());
  queue();
  EXPECT_EQ(at_.has(), Has::kTurn);
  EXPECT_FALSE(at_.was_given_place());
  EXPECT_FALSE(at_.take_place());
  EXPECT_EQ(at_.has(), Has::kNothing);
}

TEST_F(DestinationTurnTest, GivesBackWhateverItHasWhenItLeaves) {
  queue();
  at_.leave_unused();
  EXPECT_EQ(at_.has(), Has::kNothing);
  EXPECT_EQ(in_flight(), 0U);
  queue();
  ASSERT_TRUE(at_.take_place());
  at_.leave_queue();
  at_.leave_queue();
  EXPECT_EQ(at_.has(), Has::kNothing);
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(DestinationTurnTest, HasNoPlaceWithoutATurn) {
  EXPECT_FALSE(kDestination.allow(Has::kNothing, Has::kPlace));
  EXPECT_FALSE(kDestination.allow(Has::kPlace, Has::kTurn));
}

}  // namespace
}  // namespace penstock::proxy
