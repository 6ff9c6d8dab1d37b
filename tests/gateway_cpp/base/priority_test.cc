#include "base/priority.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(Priority, IsReadAsItIsNamed) {
  EXPECT_EQ(priority_named("low"), Priority::kLow);
  EXPECT_EQ(priority_named("normal"), Priority::kNormal);
  EXPECT_EQ(priority_named("high"), Priority::kHigh);
}

TEST(Priority, NoOtherWordIsOne) {
  for (const std::string_view word : {"", "High", "urgent", "low "}) {
    EXPECT_EQ(priority_named(word), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace penstock::base
