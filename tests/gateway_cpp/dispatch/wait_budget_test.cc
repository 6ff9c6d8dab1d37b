// What a dispatcher makes of waits that turn out longer than they were estimated.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;

using WaitBudgetTest = DispatcherTest;

TEST_F(WaitBudgetTest, TakesFewerToWaitWhereWaitsHaveBeenLongerThanTheirEstimates) {
  limits_.wait_budget = milliseconds(1100);
  limit(1);
  const auto runs_for = [&](Asking& asking, milliseconds time) {
    Place place = asking.turn.take();
    clock_.advance(time);
    place.release();
  };
  const auto one_waits = [&](milliseconds time_of_first) {
    Asking first;
    Asking second;
    admit(first);
    admit(second);
    runs_for(first, time_of_first);
    runs_for(second, milliseconds(500));
  };
  const auto third = [&] {
    Asking first;
    Asking second;
    Asking third;
    admit(first);
    admit(second);
    return admit(third).refusal;
  };
  for (int i = 0; i < 40; ++i) one_waits(milliseconds(500));
  EXPECT_FALSE(third()) << "it would wait a second";
  one_waits(milliseconds(700));
  EXPECT_FALSE(third());
  one_waits(milliseconds(700));
  const auto no = third();
  ASSERT_TRUE(no);
  EXPECT_EQ(no->reason, admission::DropReason::kWaitExceeded);
  EXPECT_NE(no->detail.find("or up to 14"), std::string::npos) << no->detail;
  clock_.advance(std::chrono::minutes(2));
  EXPECT_FALSE(third()) << "that is long ago";
}

TEST_F(WaitBudgetTest, LearnsNothingOfWaitsFromThoseThatWaitedWhileAReplicaWent) {
  limits_.wait_budget = milliseconds(700);
  limit(1);
  announce({"r1", "r2"});
  const auto third_waits = [&](milliseconds time_of_others, bool one_goes) {
    Asking first;
    Asking second;
    Asking third;
    admit(first);
    admit(second);
    const auto no = admit(third).refusal;
    if (one_goes) announce({"r1"});
    clock_.advance(time_of_others);
    first.turn.leave();
    second.turn.leave();
    announce({"r1", "r2"});
    third.turn.leave();
    return no;
  };
  const auto run_for_half_a_second = [&] {
    Asking asking;
    admit(asking);
    Place place = asking.turn.take();
    clock_.advance(milliseconds(500));
    place.release();
  };
  for (int i = 0; i < 200; ++i) run_for_half_a_second();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(third_waits(milliseconds(900), true));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(third_waits(milliseconds(900), false));
  EXPECT_TRUE(third_waits(milliseconds(900), false));
}

}  // namespace
}  // namespace penstock::dispatch
