#include "proxy/settle.h"

#include <gtest/gtest.h>

#include "http/metrics_page.h"
#include "kept_records.h"
#include "log_capture.h"

namespace penstock::proxy {
namespace {

class SettleTest : public testing::Test {
 protected:
  test::FixedClock clock_;
  test::LogCapture log_;
  base::Metrics metrics_;
  base::MetricsShard& shard_ = metrics_.add_shard();
  runtime::GatewayState state_;
  RecordPool pool_;
  KeptRecords records_;
  const Settling with_{clock_, log_.log(), shard_, state_, pool_, &records_};
};

TEST_F(SettleTest, CountsAndLogsOneRequestOnce) {
  {
    Settlement settlement(with_, clock_.steady_now());
    settlement.record.request_id = "req_1";
    settlement.record.stay(Way::kNamed, "mini", {}, 0);
    settlement.record.status = 200;
    settlement.record.outcome = base::Outcome::kSucceeded;
    settlement.record.attempts_made = 2;
    EXPECT_EQ(settlement.enter_gateway(), 0U);
    settlement.opening();
    EXPECT_EQ(state_.in_flight.load(), 1U);
    EXPECT_EQ(shard_.deployment("mini")->in_flight.value(), 1);
    clock_.advance(std::chrono::milliseconds(30));
    settlement.first_byte();
    clock_.advance(std::chrono::milliseconds(10));
    settlement.first_byte();
    settlement.record.completion_tokens = 3;
    settlement.record.cached_tokens = 64;
    settlement.last_byte();
  }
  const auto totals = metrics_.totals().at(0);
  EXPECT_EQ(totals.requests, 1U);
  EXPECT_EQ(totals.succeeded, 1U);
  EXPECT_EQ(totals.in_flight, 0U);
  EXPECT_EQ(totals.ttft_sum, std::chrono::milliseconds(30));
  EXPECT_EQ(shard_.deployment("mini")->failovers.value(), 1U);
  const auto& mini = *shard_.deployment("mini");
  EXPECT_EQ(mini.attempts.value(), 2U);
  EXPECT_EQ(mini.prefix_hits.value(), 1U);
  EXPECT_EQ(mini.generation.sum_ns(), 10'000'000U);
  const std::string page = http::metrics_page(metrics_, {});
  const std::string times = "gen_ai_server_time_per_output_token_seconds_sum";
  EXPECT_NE(page.find(times + R"({deployment="mini",outcome="succeeded")"), std::string::npos);
  EXPECT_NE(page.find("} 0.005\n"), std::string::npos) << "of the two tokens after the first";
  EXPECT_EQ(mini.engine_ttft.observed(), 0U) << "the engine has not told it";
  EXPECT_EQ(state_.in_flight.load(), 0U);
  const std::string line = log_.text();
  EXPECT_NE(line.find(R"("request_id":"req_1")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("ttft_ms":30)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("duration_ms":40)"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
}

TEST_F(SettleTest, CountsAttemptsWhereTheyWereMadeAndTheRungWhereItWasAsked) {
  {
    Settlement settlement(with_, clock_.steady_now());
    settlement.record.stay(Way::kNamed, "mini", {}, 0);
    settlement.opening();
    settlement.record.attempts_made = 3;
    settlement.left("mini", base::make_error(base::Kind::kUpstreamFailed, "gone"));
    EXPECT_FALSE(settlement.is_open());
    EXPECT_EQ(shard_.deployment("mini")->in_flight.value(), 0);
    settlement.record.stay(Way::kRung, "big", {}, 0);
    settlement.opening();
    settlement.record.attempts_made = 4;
    settlement.record.degraded = "queue_full";
    settlement.record.rung = "fallback:big";
    settlement.record.asked = "mini";
    settlement.record.outcome = base::Outcome::kSucceeded;
  }
  EXPECT_EQ(shard_.deployment("mini")->attempts.value(), 3U);
  EXPECT_EQ(shard_.deployment("mini")->failovers.value(), 2U);
  EXPECT_EQ(shard_.deployment("big")->attempts.value(), 1U);
  EXPECT_EQ(shard_.deployment("big")->failovers.value(), 0U);
  EXPECT_EQ(shard_.deployment("big")->in_flight.value(), 0);
  uint64_t degraded = 0;
  shard_.deployment("mini")->each_degraded([&](auto, auto, uint64_t count) { degraded += count; });
  EXPECT_EQ(degraded, 1U);
}

TEST_F(SettleTest, SaysWhoseRequestItWasAndWhyItWasRefused) {
  {
    Settlement settlement(with_, clock_.steady_now());
    settlement.record.tenant = "acme";
    settlement.record.key_id = "key_1";
    settlement.record.client = "192.0.2.7";
    auto error = base::make_error(base::Kind::kOverloaded, "full");
    error.drop_reason = "queue_full";
    settlement.failed(error);
  }
  const std::string line = log_.text();
  for (const auto* told : {R"("tenant":"acme","key_id":"key_1","client":"192.0.2.7")",
                           R"("error_code":"overloaded","drop_reason":"queue_full")"}) {
    EXPECT_NE(line.find(told), std::string::npos) << line;
  }
  const auto rejected = static_cast<size_t>(base::Outcome::kRejected);
  EXPECT_EQ(shard_.tenant("acme").settled[rejected].value(), 1U);
}

TEST_F(SettleTest, KeepsNoMessageThatMayQuoteABodyButTheFieldThatWasWrong) {
  const auto kept = [this](const std::string& param, bool quotes) {
    auto error = base::make_error(base::Kind::kInvalidValue, "it says: secret", param);
    error.quotes = quotes;
    Settlement(with_, clock_.steady_now()).failed(error);
    return records_.last().message();
  };
  EXPECT_EQ(kept("top_k", false), "it says: secret");
  EXPECT_EQ(kept("top_k", true), "param: top_k");
  EXPECT_EQ(kept("", true), "");
  EXPECT_EQ(kept(std::string(65, 'x'), true), "") << "no name is so long";
}

TEST_F(SettleTest, CountsARequestThatNeverGotANameAsUnknown) {
  {
    Settlement settlement(with_, clock_.steady_now());
    settlement.record.status = 400;
    settlement.failed(base::make_error(base::Kind::kInvalidJson, "not JSON"));
  }
  EXPECT_TRUE(metrics_.totals().empty());
  EXPECT_NE(http::metrics_page(metrics_, {})
                .find(R"(requests_total{deployment="unknown",outcome="invalid",code="400"} 1)"),
            std::string::npos);
}

TEST_F(SettleTest, JudgesByTheObjectivesOfItsDeploymentAndNotWhatALimitRefuses) {
  for (const auto reason : {"queue_full", "rate_limited", "budget"}) {
    Settlement settlement(with_, clock_.steady_now());
    settlement.record.stay(Way::kNamed, "mini", {}, 0).slo.errors = true;
    auto error = base::make_error(base::Kind::kOverloaded, "no");
    error.drop_reason = reason;
    settlement.failed(error);
  }
  const auto& errors =
      shard_.deployment("mini")->slo[static_cast<size_t>(base::Objective::kErrors)];
  EXPECT_EQ(errors.requests.value(), 1U);
  EXPECT_EQ(errors.bad.value(), 1U);
}

TEST_F(SettleTest, TimesEveryPhaseByItself) {
  {
    Settlement settlement(with_, clock_.steady_now());
    clock_.advance(std::chrono::milliseconds(1));
    settlement.enter(base::Phase::kSelect);
    clock_.advance(std::chrono::milliseconds(2));
    settlement.enter(base::Phase::kOpen);
    clock_.advance(std::chrono::milliseconds(4));
    settlement.enter(base::Phase::kSelect);
    clock_.advance(std::chrono::milliseconds(8));
  }
  const std::string line = log_.text();
  EXPECT_NE(line.find(R"("parse_ms":1,)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("select_ms":10,)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("open_ms":4,)"), std::string::npos) << line;
  const std::string page = http::metrics_page(metrics_, {});
  const std::string labels = R"({deployment="unknown",outcome="cancelled",phase=")";
  EXPECT_NE(page.find("phase_seconds_sum" + labels + R"(select"} 0.01)"), std::string::npos)
      << page;
  EXPECT_EQ(page.find(labels + "stream"), std::string::npos);
}

TEST(OutcomeOf, TellsWhoseFaultAnEndIs) {
  EXPECT_EQ(outcome_of(base::make_error(base::Kind::kClientGone, "")), base::Outcome::kCancelled);
  EXPECT_EQ(outcome_of(base::make_error(base::Kind::kInvalidJson, "")), base::Outcome::kInvalid);
  EXPECT_EQ(outcome_of(base::make_error(base::Kind::kUpstreamFailed, "")), base::Outcome::kFailed);
  auto shed = base::make_error(base::Kind::kShedLoad, "");
  shed.drop_reason = "replicas_full";
  EXPECT_EQ(outcome_of(shed), base::Outcome::kRejected);
}

}  // namespace
}  // namespace penstock::proxy
