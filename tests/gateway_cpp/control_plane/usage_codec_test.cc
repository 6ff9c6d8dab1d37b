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

TEST(UsageCodec, ReadsWhatTheHeadHasAddedUp) {
  penstock::v1::GatewayReportReply reply;
  admission::DayLedger day;
  hear_day(reply, day);
  EXPECT_EQ(day.standing("acme", "key-1", {}).as_of, base::WallTime{}) << "an older head's";
  reply.set_as_of_ms(1'500);
  reply.set_day_ends_at_ms(86'400'000);
  reply.set_whole(true);
  penstock::v1::UsageReport& row = *reply.add_usage();
  row.set_tenant("acme");
  row.set_key_id("key-1");
  row.set_requests(1);
  row.set_rejected(2);
  row.set_prompt_tokens(3);
  row.set_completion_tokens(4);
  row.set_cached_tokens(5);
  row.set_cost_nanousd(6);
  hear_day(reply, day);
  const auto standing = day.standing("acme", "key-1", {});
  EXPECT_EQ(standing.as_of, base::WallTime(std::chrono::milliseconds(1'500)));
  EXPECT_EQ(standing.ends_at, base::WallTime(std::chrono::hours(24)));
  EXPECT_EQ(standing.key, (admission::UsageCounts{.requests = 1,
                                                  .rejected = 2,
                                                  .prompt_tokens = 3,
                                                  .completion_tokens = 4,
                                                  .cached_tokens = 5,
                                                  .cost_nanousd = 6}));
}

}  // namespace
}  // namespace penstock::control_plane
