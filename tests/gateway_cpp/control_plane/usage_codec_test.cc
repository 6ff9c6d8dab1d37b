#include "control_plane/usage_codec.h"

#include <gtest/gtest.h>

namespace penstock::control_plane {
namespace {

TEST(UsageCodec, TellsEveryRowWithAllItsCounts) {
  admission::UsageBook book;
  book.add("acme", "key-1", "mini", "pirate@1",
           {.requests = 1,
            .rejected = 2,
            .prompt_tokens = 3,
            .completion_tokens = 4,
            .cached_tokens = 5,
            .cost_nanousd = 6'000'000'000});
  book.add("acme", "key-1", "mini", "pirate@1", {.cost_nanousd = 1});
  book.add("", "", "mini", "", {.requests = 6});
  penstock::v1::GatewayReport report;
  add_usage(book.totals(), report);
  ASSERT_EQ(report.usage_size(), 2);
  EXPECT_EQ(report.usage(0).tenant(), "");
  EXPECT_EQ(report.usage(0).requests(), 6U);
  const penstock::v1::UsageReport& row = report.usage(1);
  EXPECT_EQ(row.tenant(), "acme");
  EXPECT_EQ(row.key_id(), "key-1");
  EXPECT_EQ(row.deployment(), "mini");
  EXPECT_EQ(row.adapter(), "pirate@1");
  EXPECT_EQ(row.requests(), 1U);
  EXPECT_EQ(row.rejected(), 2U);
  EXPECT_EQ(row.prompt_tokens(), 3U);
  EXPECT_EQ(row.completion_tokens(), 4U);
  EXPECT_EQ(row.cached_tokens(), 5U);
  EXPECT_EQ(row.cost_nanousd(), 6'000'000'001U);
}

}  // namespace
}  // namespace penstock::control_plane
