#include "base/priority.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(Priority, IsReadAsItIsNamed) {
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    EXPECT_EQ(priority_named(name(priority)), priority);
  }
}

TEST(Priority, NoOtherWordIsOne) {
  for (const std::string_view word : {"", "High", "urgent", "low "}) {
    EXPECT_EQ(priority_named(word), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace penstock::base
