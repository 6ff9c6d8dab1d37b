#include "control_plane/report_client.h"

#include <gtest/gtest.h>

#include <atomic>

#include "control_plane/deployment_reports.h"
#include "control_plane/head_channel.h"
#include "fake_head.h"

namespace penstock::control_plane {
namespace {

constexpr std::chrono::milliseconds kOften{10};

void no_replies(const penstock::v1::GatewayReportReply& /*reply*/) {
  FAIL() << "this head answers nothing";
}

TEST(DeploymentReports, CarryEveryCount) {
  const base::DeploymentTotals total{.deployment = "mini",
                                     .in_flight = 1,
                                     .requests = 2,
                                     .succeeded = 3,
                                     .failed = 4,
                                     .rejected = 5,
                                     .cancelled = 6,
                                     .prompt_tokens = 7,
                                     .completion_tokens = 8,
                                     .ttft_sum = std::chrono::microseconds(9)};
  penstock::v1::GatewayReport report;
  add_deployments({&total, 1}, report);
  ASSERT_EQ(report.deployments_size(), 1);
  const auto& out = report.deployments(0);
  EXPECT_EQ(out.deployment(), "mini");
  EXPECT_EQ(out.in_flight(), 1U);
  EXPECT_EQ(out.requests(), 2U);
  EXPECT_EQ(out.succeeded(), 3U);
  EXPECT_EQ(out.failed(), 4U);
  EXPECT_EQ(out.rejected(), 5U);
  EXPECT_EQ(out.cancelled(), 6U);
  EXPECT_EQ(out.prompt_tokens(), 7U);
  EXPECT_EQ(out.completion_tokens(), 8U);
  EXPECT_EQ(out.ttft_us_sum(), 9U);
}

TEST(ReportClient, ReportsAgainAndAgain) {
  FakeHead head;
  const base::SystemClock clock;
  std::atomic<std::uint64_t> version = 0;
  ReportClient client(
      "gw-1", connect_to_head(head.address()), clock,
      [&version](penstock::v1::GatewayReport& report) { report.set_snapshot_version(++version); },
      no_replies, kOften);
  client.start();
  ASSERT_TRUE(head.wait_for([&] { return head.reports.size() >= 3; }));
  client.stop();
  EXPECT_EQ(head.reports[0].gateway_id(), "gw-1");
  EXPECT_GT(head.reports[0].at_ms(), 1'600'000'000'000);
  EXPECT_EQ(head.reports[2].snapshot_version(), 3U);
}

TEST(ReportClient, HearsWhatTheHeadAnswers) {
  FakeHead head;
  head.answers = true;
  const base::SystemClock clock;
  std::atomic<std::int64_t> heard = 0;
  const auto nothing = [](auto&) {};
  ReportClient client(
      "gw-1", connect_to_head(head.address()), clock, nothing,
      [&heard](const penstock::v1::GatewayReportReply& reply) { heard = reply.as_of_ms(); },
      kOften);
  client.start();
  ASSERT_TRUE(head.wait_for([&] { return head.reports.size() >= 3 && heard > 0; }));
  client.stop();
  EXPECT_TRUE(head.reports[0].takes_replies());
  EXPECT_EQ(heard, head.reports.back().at_ms());
}

TEST(ReportClient, GoesOnAfterTheHeadWasAway) {
  FakeHead head;
  const base::SystemClock clock;
  const auto nothing = [](auto&) {};
  ReportClient client("gw-1", connect_to_head(head.address()), clock, nothing, no_replies, kOften);
  client.start();
  ASSERT_TRUE(head.wait_for([&] { return !head.reports.empty(); }));
  head.kill();
  const std::size_t before = head.reports.size();
  head.start_again();
  EXPECT_TRUE(head.wait_for([&] { return head.reports.size() > before; }));
}

TEST(ReportClient, DoesNotWaitWhenThereIsAHurry) {
  FakeHead head;
  const base::SystemClock clock;
  const auto nothing = [](auto&) {};
  ReportClient client("gw-1", connect_to_head(head.address()), clock, nothing, no_replies,
                      std::chrono::hours(1));
  client.start();
  ASSERT_TRUE(head.wait_for([&] { return head.reports.size() == 1; }));
  client.hurry();
  EXPECT_TRUE(head.wait_for([&] { return head.reports.size() == 2; }));
}

TEST(ReportClient, WithoutAHeadItDoesNothing) {
  const base::SystemClock clock;
  const auto never = [](auto&) { FAIL(); };
  ReportClient client("gw-1", {}, clock, never, no_replies, kOften);
  client.start();
  client.stop();
}

}  // namespace
}  // namespace penstock::control_plane
