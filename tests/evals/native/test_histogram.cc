#include "histogram.h"

#include <gtest/gtest.h>

namespace penstock::evals {
namespace {

TEST(Histogram, SaysNothingOfNothing) {
  EXPECT_EQ(Histogram().quantile(0.5), 0u);
  EXPECT_EQ(Histogram().count(), 0u);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 50; ++value) histogram.add(value);
  EXPECT_EQ(histogram.quantile(0.5), 25u);
  EXPECT_EQ(histogram.quantile(0.99), 50u);
  EXPECT_EQ(histogram.quantile(0), 1u);
  EXPECT_EQ(histogram.max(), 50u);
}

TEST(Histogram, QuantilesAreWithinTwoPercentAtAnySize) {
  for (uint64_t scale = 1; scale < 1'000'000'000'000'000; scale *= 7) {
    Histogram histogram;
    for (uint64_t value = 1; value <= 1'000; ++value) histogram.add(value * scale);
    for (const double share : {0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
      const double exact = share * 1'000 * double(scale);
      EXPECT_NEAR(double(histogram.quantile(share)), exact, 0.02 * exact) << scale << " " << share;
    }
  }
}

TEST(Histogram, TakesTheLargestValue) {
  Histogram histogram;
  histogram.add(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_GT(histogram.quantile(0.5), UINT64_MAX / 64 * 63);
}

TEST(Histogram, IsEmptyAfterClear) {
  Histogram histogram;
  histogram.add(7);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
}

}  // namespace
}  // namespace penstock::evals
