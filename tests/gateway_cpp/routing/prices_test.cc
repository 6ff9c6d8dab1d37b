#include "routing/prices.h"

#include <gtest/gtest.h>

namespace penstock::routing {
namespace {

TEST(Prices, AreOfAMillionTokensInBillionthsOfADollar) {
  const Prices prices{.input = 0.25, .output = 2, .cached = 0.025};
  EXPECT_EQ(prices.nanousd(1'000'000, 0, 0), 250'000'000U);
  EXPECT_EQ(prices.nanousd(0, 0, 1'000'000), 2'000'000'000U);
  EXPECT_EQ(prices.nanousd(1'000, 400, 10), 600 * 250 + 400 * 25 + 10 * 2'000U);
  EXPECT_EQ(prices.nanousd(10, 30, 0), 250U) << "no more of a prompt is cached than there is";
}

TEST(Prices, OfNothingAreNothingAndOfTooMuchAreBounded) {
  EXPECT_EQ(Prices{}.nanousd(1'000'000, 0, 1'000'000), 0U);
  EXPECT_LE((Prices{.input = 9e6}.nanousd(1ULL << 60, 0, 0)), 1ULL << 53);
}

}  // namespace
}  // namespace penstock::routing
