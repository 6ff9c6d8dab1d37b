#include "routing/ejection.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace penstock::routing
