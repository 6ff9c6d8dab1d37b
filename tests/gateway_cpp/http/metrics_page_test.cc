#include "http/metrics_page.h"

#include <gtest/gtest.h>

#include "page_lines.h"

namespace penstock::http {
namespace {

using std::chrono::milliseconds;
using test::has_line;

TEST(MetricsPage, LeavesOutHistogramsThatObservedNothing) {
  base::Metrics metrics;
  metrics.add_shard().deployment("mini")->generation.observe(milliseconds(1));
  const std::string page = metrics_page(metrics, {});
  EXPECT_NE(page.find("penstock_gateway_generation_seconds_bucket{deployment="), std::string::npos);
  EXPECT_EQ(page.find("penstock_gateway_engine_ttft_seconds_bucket{"), std::string::npos);
  EXPECT_NE(page.find("# TYPE penstock_gateway_engine_ttft_seconds histogram"), std::string::npos);
}

TEST(MetricsPage, TellsHowDeploymentsStandThatAreAskedOrHaveSomethingToTell) {
  base::Metrics metrics;
  metrics.add_shard().deployment("asked")->settled(base::Outcome::kSucceeded, 200);
  GatewayFacts facts{.request_bytes_held = 5,
                     .answer_bytes_held = 6,
                     .shadow_bytes_held = 7,
                     .resume_bytes_held = 8};
  admission::ShadowRow shadow{.uid = "u1", .name = "next", .under_way = 2};
  shadow.counts[static_cast<std::size_t>(admission::ShadowOutcome::kPaired)] = 3;
  facts.shadows = {shadow};
  dispatch::DeploymentStanding ejects;
  ejects.ejections[1] = 3;  // of kDoubtReasons
  facts.deployments = {{"asked", {}},
                       {"silent", {}},
                       {"waits", {.queued = 2, .estimated_wait = milliseconds(1500)}},
                       {"ejects", ejects}};
  const std::string page = metrics_page(metrics, facts);
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_queued{deployment="asked"} 0)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_queued{deployment="waits"} 2)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_estimated_wait_seconds{deployment="waits"} 1.5)"));
  EXPECT_TRUE(has_line(
      page, R"(penstock_gateway_ejections_total{deployment="ejects",reason="failing"} 3)"));
  EXPECT_EQ(page.find("silent"), std::string::npos);
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_held_bytes{of="requests"} 5)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_held_bytes{of="answers"} 6)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_held_bytes{of="shadows"} 7)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_held_bytes{of="resumes"} 8)"));
  EXPECT_TRUE(has_line(
      page, R"(penstock_gateway_shadow_requests_total{rule="next",uid="u1",outcome="paired"} 3)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_shadow_in_flight{rule="next",uid="u1"} 2)"));
}

}  // namespace
}  // namespace penstock::http
