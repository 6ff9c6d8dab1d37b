#include "http/times_page.h"

#include <gtest/gtest.h>

#include "http/metrics_page.h"
#include "page_lines.h"

namespace penstock::http {
namespace {

using std::chrono::milliseconds;
using test::has_line;
using test::kTrace;
constexpr std::string_view kOther = "ffffffffffffffffffffffffffffffff";

class TimesPage : public testing::Test {
 protected:
  void end(const base::RequestEnd& end) { one_.deployment("mini")->ended(end, {}); }
  std::string page(base::TextFormat format = base::TextFormat::kPrometheus) const {
    return metrics_page(metrics_, {}, format);
  }

  base::Metrics metrics_;
  base::MetricsShard& one_ = metrics_.add_shard();
  base::MetricsShard& two_ = metrics_.add_shard();
};

TEST_F(TimesPage, TellsRequestsByDeploymentOutcomeAndOperationInTheConventionsNames) {
  end({.outcome = base::Outcome::kSucceeded, .operation = "chat", .duration = milliseconds(30)});
  two_.deployment("mini")->ended({.outcome = base::Outcome::kSucceeded, .operation = "chat"}, {});
  end({.outcome = base::Outcome::kFailed, .operation = "embeddings"});
  const std::string name = "gen_ai_server_request_duration_seconds_count";
  const std::string text = page();
  EXPECT_TRUE(has_line(text, name + R"({deployment="mini",outcome="succeeded",)"
                                    R"(gen_ai_operation_name="chat",)"
                                    R"(gen_ai_provider_name="penstock",)"
                                    R"(gen_ai_request_model="mini"} 2)"))
      << text;
  EXPECT_TRUE(has_line(text, name + R"({deployment="mini",outcome="failed",)"
                                    R"(gen_ai_operation_name="embeddings",)"
                                    R"(gen_ai_provider_name="penstock",)"
                                    R"(gen_ai_request_model="mini",error_type="failed"} 1)"))
      << text;
  EXPECT_EQ(text.find("gen_ai_server_time_to_first_token_seconds_count{"), std::string::npos);
}

TEST_F(TimesPage, AddsPhasesAndWaitsUpOverOperations) {
  base::PhaseTimes phases;
  phases.spent[static_cast<std::size_t>(base::Phase::kAdmit)] = milliseconds(40);
  phases.entered[static_cast<std::size_t>(base::Phase::kAdmit)] = true;
  for (const std::string_view operation : {"chat", "embeddings"}) {
    end({.outcome = base::Outcome::kRejected,
         .operation = operation,
         .queue_wait = milliseconds(7),
         .phases = phases});
  }
  const std::string labels = R"({deployment="mini",outcome="rejected")";
  const std::string text = page();
  EXPECT_TRUE(has_line(text, "penstock_gateway_queue_wait_seconds_count" + labels + "} 2"));
  EXPECT_TRUE(
      has_line(text, "penstock_gateway_phase_seconds_sum" + labels + R"(,phase="admit"} 0.08)"));
  EXPECT_EQ(text.find(R"(phase="open")"), std::string::npos);
}

TEST_F(TimesPage, LeadsFromABucketToTheLastRequestInItInOpenMetricsAlone) {
  const auto ended = [](milliseconds took, std::string_view trace, std::int64_t at) {
    return base::RequestEnd{.outcome = base::Outcome::kSucceeded,
                            .operation = "chat",
                            .duration = took,
                            .trace_id = trace,
                            .at = base::from_unix_ms(at)};
  };
  end(ended(milliseconds(35), kOther, 1'000));
  two_.deployment("mini")->ended(ended(milliseconds(30), kTrace, 1'700'000'000'250), {});
  end(ended(milliseconds(7), "no trace id", 2'000));
  const std::string bucket =
      R"(gen_ai_server_request_duration_seconds_bucket{deployment="mini",outcome="succeeded",)"
      R"(gen_ai_operation_name="chat",gen_ai_provider_name="penstock",)"
      R"(gen_ai_request_model="mini",le=")";
  const std::string open = page(base::TextFormat::kOpenMetrics);
  EXPECT_TRUE(has_line(open, bucket + R"(0.04"} 3 # {trace_id=")" + std::string(kTrace) +
                                 R"("} 0.03 1700000000.250)"))
      << open;
  EXPECT_TRUE(has_line(open, bucket + R"(0.01"} 1)")) << "what is no trace id leads nowhere";
  EXPECT_TRUE(has_line(page(), bucket + R"(0.04"} 3)"));
}

TEST_F(TimesPage, GoesOnToLeadToLateRequestsWhenTheClockWasSetBack) {
  for (const auto& [trace, at] :
       {std::pair{kOther, 1'700'000'000'000}, {kTrace, 1'600'000'000'000}})
    end({.outcome = base::Outcome::kSucceeded, .trace_id = trace, .at = base::from_unix_ms(at)});
  const std::string open = page(base::TextFormat::kOpenMetrics);
  EXPECT_NE(open.find(kTrace), std::string::npos);
  EXPECT_EQ(open.find(kOther), std::string::npos);
}

TEST_F(TimesPage, CallsCountersWithoutTheirEndInOpenMetricsAndSaysWhereThatEnds) {
  const std::string open = page(base::TextFormat::kOpenMetrics);
  EXPECT_NE(open.find("# TYPE penstock_gateway_requests counter\n"), std::string::npos);
  EXPECT_TRUE(has_line(open, "penstock_gateway_bad_requests_total 0"));
  EXPECT_TRUE(open.ends_with("\n# EOF\n"));
  EXPECT_NE(page().find("# TYPE penstock_gateway_requests_total counter\n"), std::string::npos);
  EXPECT_EQ(page().find("# EOF"), std::string::npos);
}

}  // namespace
}  // namespace penstock::http
