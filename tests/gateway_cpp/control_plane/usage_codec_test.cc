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
  add_usage(book, report);
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

TEST(UsageCodec, LeavesOutWhatTheHeadHasStoredUntilAHeadBeginsToListen) {
  admission::UsageBook book;
  book.add("acme", "key-1", "mini", "", {.requests = 1});
  const auto told = [&book] {
    penstock::v1::GatewayReport report;
    add_usage(book, report);
    return report;
  };
  penstock::v1::GatewayReportReply reply;
  reply.set_as_of_ms(1);
  reply.set_stored(told().number());
  EXPECT_EQ(told().usage_size(), 1) << "nothing was said to be stored";
  hear_usage(reply, book);
  EXPECT_EQ(told().usage_size(), 0);
  reply.set_whole(true);
  hear_usage(reply, book);
  EXPECT_EQ(told().usage_size(), 1);
}

TEST(UsageCodec, TellsWhatIsHeldOfLimitsOfADay) {
  admission::UsageBook book;
  auto one = book.day().reserve({"acme", {}}, {.tokens = 100}, {.tokens = 7}, {});
  std::get<admission::DayReservation>(one).settle({.tokens = 5, .nanousd = 6});
  const auto two =
      book.day().reserve({"acme", {}}, {.tokens = 100}, {.tokens = 8, .nanousd = 9}, {});
  penstock::v1::GatewayReport report;
  add_usage(book, report);
  ASSERT_EQ(report.holds_size(), 1);
  const penstock::v1::DayHold& hold = report.holds(0);
  EXPECT_EQ(hold.tenant(), "acme");
  EXPECT_EQ(hold.key_id(), "");
  EXPECT_EQ(hold.used_tokens(), 5U);
  EXPECT_EQ(hold.used_nanousd(), 6U);
  EXPECT_EQ(hold.reserved_tokens(), 8U);
  EXPECT_EQ(hold.reserved_nanousd(), 9U);
  const admission::DayHolder cloud{.tenant = {}, .key_id = {}, .deployment = "cloud"};
  const auto three = book.day().reserve(cloud, {.tokens = 100}, {.tokens = 1}, {});
  report.Clear();
  add_usage(book, report);
  ASSERT_EQ(report.holds_size(), 2);
  EXPECT_EQ(report.holds(0).deployment(), "cloud");
  EXPECT_EQ(report.holds(1).deployment(), "");
}

TEST(UsageCodec, ReadsWhatDeploymentsSpentAndHaveReserved) {
  penstock::v1::GatewayReportReply reply;
  reply.set_as_of_ms(1'500);
  reply.set_day_ends_at_ms(86'400'000);
  reply.add_spent()->set_deployment("cloud");
  reply.mutable_spent(0)->set_prompt_tokens(30);
  reply.mutable_spent(0)->set_completion_tokens(20);
  reply.add_holds()->set_deployment("cloud");
  reply.mutable_holds(0)->set_reserved_tokens(40);
  admission::UsageBook book;
  hear_usage(reply, book);
  const admission::DayHolder cloud{.tenant = {}, .key_id = {}, .deployment = "cloud"};
  EXPECT_TRUE(book.day().has_room(cloud, {.tokens = 100}, {.tokens = 10}, {}));
  EXPECT_FALSE(book.day().has_room(cloud, {.tokens = 100}, {.tokens = 11}, {}));
}

TEST(UsageCodec, ReadsWhatTheHeadHasAddedUp) {
  penstock::v1::GatewayReportReply reply;
  admission::UsageBook book;
  const admission::DayLedger& day = book.day();
  hear_usage(reply, book);
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
  penstock::v1::DayHold& ours = *reply.add_holds();
  ours.set_tenant("acme");
  ours.set_used_tokens(2);
  ours.set_reserved_tokens(40);
  hear_usage(reply, book);
  EXPECT_EQ(day.standing("acme", "key-1", {}).tenant_taken.tokens, 3U + 4 + 40);
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
