#include "routing/replica_tracker.h"

#include <gtest/gtest.h>

#include <utility>

namespace penstock::routing {
namespace {

using std::chrono::seconds;

const base::SteadyTime kNow{std::chrono::hours(1)};

TEST(ReplicaTracker, CountsACallForAsLongAsItsTokenLives) {
  const auto tracker = std::make_shared<ReplicaTracker>();
  {
    InFlight first(tracker);
    InFlight moved(std::move(first));
    EXPECT_EQ(tracker->in_flight(), 1U);
    InFlight other(tracker);
    other = std::move(moved);
    EXPECT_EQ(tracker->in_flight(), 1U);
    other.release();
    other.release();
    EXPECT_EQ(tracker->in_flight(), 0U);
  }
  EXPECT_EQ(tracker->in_flight(), 0U);
}

TEST(ReplicaTracker, LoadIsOurOwnCallsAndThoseOfOthers) {
  const auto tracker = std::make_shared<ReplicaTracker>();
  const InFlight one(tracker);
  const InFlight two(tracker);
  tracker->report(4, 1);  // two of these are ours
  EXPECT_EQ(tracker->load(), 5U);
  const InFlight three(tracker);
  EXPECT_EQ(tracker->load(), 6U);
}

TEST(ReplicaTracker, AReportThatLagsBehindIsNotNegative) {
  const auto tracker = std::make_shared<ReplicaTracker>();
  const InFlight one(tracker);
  tracker->report(0, 0);
  EXPECT_EQ(tracker->load(), 1U);
}

TEST(ReplicaTracker, ADownMarkEndsByItself) {
  ReplicaTracker tracker;
  EXPECT_FALSE(tracker.is_down(kNow));
  tracker.mark_down(kNow + seconds(1));
  EXPECT_TRUE(tracker.is_down(kNow));
  EXPECT_FALSE(tracker.is_down(kNow + seconds(1)));
}

TEST(ReplicaTracker, TheLaterOfTwoDownMarksHolds) {
  ReplicaTracker tracker;
  tracker.mark_down(kNow + seconds(5));
  tracker.mark_down(kNow + seconds(1));
  EXPECT_TRUE(tracker.is_down(kNow + seconds(3)));
}

TEST(ReplicaTracker, AnAnswerEndsTheDoubt) {
  ReplicaTracker tracker;
  tracker.mark_down(kNow + seconds(5));
  tracker.mark_up();
  EXPECT_FALSE(tracker.is_down(kNow));
}

}  // namespace
}  // namespace penstock::routing
