#include "base/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "http/metrics_page.h"
#include "page_lines.h"

namespace penstock::base {
namespace {

using std::chrono::milliseconds;
using test::has_line;
using test::kTrace;

TEST(Metrics, SumsItsShards) {
  Metrics metrics;
  MetricsShard& one = metrics.add_shard();
  MetricsShard& two = metrics.add_shard();
  for (MetricsShard* shard : {&one, &two}) {
    DeploymentMetrics& mini = *shard->deployment("mini");
    mini.settled(Outcome::kSucceeded, 200);
    mini.settled(Outcome::kSucceeded, 200);
    mini.events.add(5);
    mini.in_flight.add(1);
    shard->connections.add(2);
  }
  two.deployment("mini")->settled(Outcome::kFailed, 502);
  const std::string page =
      http::metrics_page(metrics, {.snapshot_version = 7, .control_connected = true});
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_requests_total{deployment="mini",)"
                             R"(outcome="succeeded",code="200"} 4)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_requests_total{deployment="mini",)"
                             R"(outcome="failed",code="502"} 1)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_events_total{deployment="mini"} 10)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_in_flight{deployment="mini"} 2)"));
  EXPECT_TRUE(has_line(page, "penstock_gateway_connections 4"));
  EXPECT_TRUE(has_line(page, "penstock_gateway_snapshot_version 7"));
  EXPECT_TRUE(has_line(page, "penstock_gateway_control_connected 1"));
}

TEST(Metrics, TellTenantsBySumsOfTheirOwnUpToABound) {
  Metrics metrics;
  MetricsShard& one = metrics.add_shard();
  MetricsShard& two = metrics.add_shard();
  const auto settle = [](MetricsShard& shard, const std::string& tenant) {
    shard.tenant(tenant).settled[static_cast<std::size_t>(Outcome::kSucceeded)].add();
  };
  for (MetricsShard* shard : {&one, &two}) settle(*shard, "acme");
  settle(one, "");
  for (int i = 0; i < 1000; ++i) settle(i % 2 == 0 ? one : two, "t" + std::to_string(i));
  const std::string page = http::metrics_page(
      metrics, {.tenants = {{"acme", {.prompt_tokens = 5, .cost_nanousd = 1'500'000'000}},
                            {"t998", {.prompt_tokens = 1}},
                            {"t999", {.prompt_tokens = 2}}}});
  const std::string ends = "penstock_gateway_tenant_requests_total{tenant=\"";
  EXPECT_TRUE(has_line(page, ends + R"(acme",outcome="succeeded"} 2)"));
  EXPECT_TRUE(has_line(page, ends + R"(-",outcome="succeeded"} 1)"));
  EXPECT_TRUE(has_line(page, ends + R"(t0",outcome="succeeded"} 1)"));
  EXPECT_TRUE(has_line(page, ends + R"(_other",outcome="succeeded"} 801)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_tenant_prompt_tokens_total{tenant="acme"} 5)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_tenant_prompt_tokens_total{tenant="_other"} 3)"));
  EXPECT_TRUE(has_line(page, R"(penstock_gateway_tenant_cost_usd_total{tenant="acme"} 1.5)"));
}

TEST(Metrics, CountTenantsFromAllThreadsWhileTheirLabelsRunOut) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shard = metrics.add_shard()] {
      for (int i = 0; i < 3000; ++i) shard.tenant("t" + std::to_string(i % 300)).settled[0].add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string page = http::metrics_page(metrics, {});
  const std::string ends = "penstock_gateway_tenant_requests_total{tenant=\"";
  EXPECT_TRUE(has_line(page, ends + R"(t0",outcome="succeeded"} 40)"));
  EXPECT_TRUE(has_line(page, ends + R"(_other",outcome="succeeded"} 4000)"));
}

TEST(Metrics, TellDropsThatAlertsLookAtBeforeTheFirst) {
  Metrics metrics;
  MetricsShard& shard = metrics.add_shard();
  shard.deployment("mini")->dropped("queue_full");
  shard.deployment(kUnknownDeployment);
  const std::string page = http::metrics_page(metrics, {});
  const std::string drops = "penstock_gateway_drops_total{deployment=\"";
  EXPECT_TRUE(has_line(page, drops + R"(mini",reason="queue_full"} 1)"));
  EXPECT_TRUE(has_line(page, drops + R"(mini",reason="wait_exceeded"} 0)"));
  EXPECT_TRUE(has_line(page, drops + R"(mini",reason="budget"} 0)"));
  EXPECT_EQ(page.find(drops + "unknown"), std::string::npos);
}

TEST(Metrics, CountsRungsByReasonAndName) {
  Metrics metrics;
  for (MetricsShard* shard : {&metrics.add_shard(), &metrics.add_shard()}) {
    shard->deployment("mini")->degraded("queue_full", "fallback:big");
    shard->deployment("mini")->degraded("context_length_exceeded", "trim");
  }
  metrics.add_shard().deployment("mini")->degraded("queue_full", "fallback:big");
  const std::string page = http::metrics_page(metrics, {});
  const std::string prefix = R"(penstock_gateway_degraded_total{deployment="mini",reason=")";
  EXPECT_TRUE(has_line(page, prefix + R"(queue_full",rung="fallback:big"} 3)"));
  EXPECT_TRUE(has_line(page, prefix + R"(context_length_exceeded",rung="trim"} 2)"));
}

TEST(Metrics, GrowNotWithEveryRungThatALadderEverHad) {
  Metrics metrics;
  DeploymentMetrics& mini = *metrics.add_shard().deployment("mini");
  for (int i = 0; i < 1000; ++i) mini.degraded("queue_full", "fallback:" + std::to_string(i));
  mini.degraded("queue_full", "fallback:7");
  int rows = 0;
  std::uint64_t sum = 0;
  std::uint64_t others = 0;
  mini.each_degraded([&](std::string_view, std::string_view rung, std::uint64_t count) {
    ++rows;
    sum += count;
    if (rung == "other") others = count;
  });
  EXPECT_EQ(rows, 257);
  EXPECT_EQ(sum, 1001U);
  EXPECT_EQ(others, 744U);
}

TEST(Metrics, HistogramsAreCumulativeAndEndInInfinity) {
  Metrics metrics;
  DeploymentMetrics& mini = *metrics.add_shard().deployment("mini");
  mini.generation.observe(milliseconds(1));  // on a bound: belongs to it
  mini.generation.observe(milliseconds(3));
  mini.generation.observe(std::chrono::hours(1));
  const std::string page = http::metrics_page(metrics, {});
  const std::string name = "penstock_gateway_generation_seconds";
  const std::string prefix = name + R"(_bucket{deployment="mini",le=")";
  EXPECT_TRUE(has_line(page, prefix + R"(0.001"} 1)"));
  EXPECT_TRUE(has_line(page, prefix + R"(0.005"} 2)"));
  EXPECT_TRUE(has_line(page, prefix + R"(600.0"} 2)"));
  EXPECT_TRUE(has_line(page, prefix + R"(+Inf"} 3)"));
  EXPECT_TRUE(has_line(page, name + R"(_count{deployment="mini"} 3)"));
  EXPECT_TRUE(has_line(page, name + R"(_sum{deployment="mini"} 3600.004)"));
}

TEST(Metrics, EscapesTheDeploymentsName) {
  Metrics metrics;
  metrics.add_shard().deployment("a\"b\\c\nd")->settled(Outcome::kInvalid, 400);
  EXPECT_NE(http::metrics_page(metrics, {}).find(R"(deployment="a\"b\\c\nd")"), std::string::npos);
}

TEST(Metrics, TotalsAreForTheHeadAndLeaveOutUnknownNames) {
  Metrics metrics;
  MetricsShard& shard = metrics.add_shard();
  DeploymentMetrics& mini = *shard.deployment("mini");
  mini.settled(Outcome::kSucceeded, 200);
  mini.settled(Outcome::kRejected, 503);
  mini.settled(Outcome::kCancelled, 499);
  mini.settled(Outcome::kInvalid, 400);
  mini.in_flight.add(3);
  mini.completion_tokens.add(11);
  mini.ended({.outcome = Outcome::kSucceeded, .ttft = milliseconds(2)}, {.errors = true});
  mini.ended({.outcome = Outcome::kFailed}, {.errors = true});
  shard.deployment(kUnknownDeployment)->settled(Outcome::kInvalid, 404);
  const std::vector<DeploymentTotals> totals = metrics.totals();
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].deployment, "mini");
  EXPECT_EQ(totals[0].requests, 4U);
  EXPECT_EQ(totals[0].succeeded, 1U);
  EXPECT_EQ(totals[0].rejected, 1U);
  EXPECT_EQ(totals[0].cancelled, 1U);
  EXPECT_EQ(totals[0].failed, 0U);
  EXPECT_EQ(totals[0].in_flight, 3U);
  EXPECT_EQ(totals[0].completion_tokens, 11U);
  EXPECT_EQ(totals[0].ttft_sum.count(), 2000);
  const auto& errors = totals[0].slo[static_cast<std::size_t>(Objective::kErrors)];
  EXPECT_EQ(errors.requests, 2U);
  EXPECT_EQ(errors.bad, 1U);
}

class DeletedDeployments : public testing::Test {
 protected:
  void keep_only(const std::string& name) {
    metrics_.keep_only([&name](const std::string& known) { return known == name; });
  }
  bool shows(const std::string& name) {
    return http::metrics_page(metrics_, {}).find("deployment=\"" + name + "\"") !=
           std::string::npos;
  }

  Metrics metrics_;
  MetricsShard& one_ = metrics_.add_shard();
  MetricsShard& two_ = metrics_.add_shard();
};

TEST_F(DeletedDeployments, Leave) {
  one_.deployment("gone")->settled(Outcome::kSucceeded, 200);
  one_.deployment("stays")->settled(Outcome::kSucceeded, 200);
  one_.deployment(kUnknownDeployment)->settled(Outcome::kInvalid, 404);
  keep_only("stays");
  EXPECT_FALSE(shows("gone"));
  EXPECT_TRUE(shows("stays"));
  EXPECT_TRUE(shows("unknown"));
  ASSERT_EQ(metrics_.totals().size(), 1U);
  EXPECT_EQ(metrics_.totals()[0].requests, 1U);
}

TEST_F(DeletedDeployments, StayWholeWhileARequestCountsInOneShard) {
  one_.deployment("gone")->settled(Outcome::kSucceeded, 200);
  auto counting = two_.deployment("gone");
  keep_only("stays");
  EXPECT_TRUE(shows("gone"));
  EXPECT_EQ(metrics_.totals().at(0).requests, 1U);
  counting.reset();
  keep_only("stays");
  EXPECT_FALSE(shows("gone"));
}

TEST_F(DeletedDeployments, BeginAnewWhenTheyComeBack) {
  one_.deployment("mini")->settled(Outcome::kSucceeded, 200);
  two_.deployment("mini")->settled(Outcome::kSucceeded, 200);
  keep_only("stays");
  two_.deployment("mini")->settled(Outcome::kFailed, 502);
  keep_only("mini");
  ASSERT_EQ(metrics_.totals().size(), 1U);
  EXPECT_EQ(metrics_.totals()[0].requests, 1U);
  EXPECT_EQ(metrics_.totals()[0].failed, 1U);
}

TEST(Metrics, CanBeReadWhileThreadsCount) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&metrics, t] {
      MetricsShard& shard = metrics.add_shard();
      for (int i = 0; i < 500; ++i) {
        shard.deployment("d" + std::to_string(i % 7))->settled(Outcome::kSucceeded, 200U + (i % 5));
        shard.deployment("d" + std::to_string(i % 7))
            ->ended({.duration = milliseconds(t), .trace_id = kTrace, .at = from_unix_ms(i + 1)},
                    {});
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    (void)http::metrics_page(metrics, {}, TextFormat::kOpenMetrics);
    metrics.keep_only([](const std::string&) { return true; });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t requests = 0;
  for (const auto& total : metrics.totals()) requests += total.requests;
  EXPECT_EQ(requests, 1500U);
}

}  // namespace
}  // namespace penstock::base
