#include "routing/ejection.h"

#include <gtest/gtest.h>

#include "routing/replica_tracker.h"

namespace penstock::routing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Ejection, DoubtsALostProcessAtOnceAndLongerEachTime) {
  EXPECT_EQ(doubt_after(1, Blame::kProcess), seconds(1));
  EXPECT_EQ(doubt_after(2, Blame::kProcess), seconds(2));
  EXPECT_EQ(doubt_after(5, Blame::kProcess), seconds(16));
  EXPECT_EQ(doubt_after(6, Blame::kProcess), seconds(30));
  EXPECT_EQ(doubt_after(4'000'000'000U, Blame::kProcess), seconds(30));
}

TEST(Ejection, ForgivesTwoBadAnswersInARow) {
  EXPECT_EQ(doubt_after(2, Blame::kAnswer), milliseconds(0));
  EXPECT_EQ(doubt_after(3, Blame::kAnswer), seconds(1));
  EXPECT_EQ(doubt_after(4, Blame::kAnswer), seconds(2));
  EXPECT_EQ(doubt_after(40, Blame::kAnswer), seconds(30));
}

TEST(Ejection, CountsTheManyCallsOfOneDeathOnce) {
  ReplicaTracker tracker;
  base::SteadyTime now{seconds(100)};
  EXPECT_EQ(tracker.note_failure(Blame::kProcess, now), seconds(1));
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(tracker.note_failure(Blame::kProcess, now), seconds(0));
  }
  now += seconds(1);
  EXPECT_FALSE(tracker.is_down(now));
  EXPECT_EQ(tracker.note_failure(Blame::kProcess, now), seconds(2));
  EXPECT_TRUE(tracker.is_down(now + milliseconds(1999)));
}

TEST(Ejection, BeginsAnewAfterAGoodAnswer) {
  ReplicaTracker tracker;
  const base::SteadyTime now{seconds(100)};
  tracker.note_failure(Blame::kAnswer, now);
  tracker.note_failure(Blame::kAnswer, now);
  tracker.mark_up();
  EXPECT_EQ(tracker.note_failure(Blame::kAnswer, now), seconds(0));
  EXPECT_FALSE(tracker.is_down(now));
}

}  // namespace
}  // namespace penstock::routing
