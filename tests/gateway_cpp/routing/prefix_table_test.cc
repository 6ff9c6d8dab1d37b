#include "routing/prefix_table.h"

#include <gtest/gtest.h>

namespace penstock::routing {
namespace {

TEST(PrefixTable, FindsWhatWasPutAndNothingElse) {
  PrefixTable table;
  EXPECT_EQ(table.find(1), 0U);
  for (std::uint32_t i = 0; i < 1000; ++i) table.put(i, i + 1);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(table.find(i), i + 1);
  EXPECT_EQ(table.find(1000), 0U);
  table.put(5, 77);
  EXPECT_EQ(table.find(5), 77U);
  EXPECT_EQ(table.size(), 1000U);
}

TEST(PrefixTable, ForgetsWhatNobodyAskedForAndNeverHoldsMoreThanTwoGenerations) {
  PrefixTable table;
  table.set_capacity(100);
  table.put(7, 1);
  table.put(8, 1);
  for (std::uint64_t block = 1000; block < 2000; ++block) {
    table.put(block, 2);
    EXPECT_EQ(table.find(7), 1U);
    EXPECT_LE(table.size(), 200U);
  }
  EXPECT_EQ(table.find(8), 0U);
  EXPECT_EQ(table.find(1000), 0U);
  EXPECT_EQ(table.find(1999), 2U);
}

}  // namespace
}  // namespace penstock::routing
