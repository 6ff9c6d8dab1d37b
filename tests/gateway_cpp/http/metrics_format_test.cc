#include "http/metrics_format.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

using base::TextFormat;

TEST(MetricsFormat, IsOpenMetricsForWhoPrefersItOrLikesItAsMuch) {
  for (const char* accept :
       {"application/openmetrics-text", "Application/OpenMetrics-Text; version=1.0.0",
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
        "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "text/plain, application/openmetrics-text"}) {
    EXPECT_EQ(metrics_format(accept), TextFormat::kOpenMetrics) << accept;
  }
}

TEST(MetricsFormat, IsPlainForAllOthers) {
  for (const char* accept :
       {"", "*/*", "text/html,text/plain", "application/openmetrics-text;q=0", "application/json",
        "application/openmetrics-text;q=0.3, text/plain;q=0.5", ";;,;q=,", "q=1"}) {
    EXPECT_EQ(metrics_format(accept), TextFormat::kPrometheus) << accept;
  }
}

TEST(MetricsFormat, TakesNoWeightThatIsNone) {
  EXPECT_EQ(metrics_format("application/openmetrics-text;q=7"), TextFormat::kOpenMetrics);
  EXPECT_EQ(metrics_format("application/openmetrics-text;q=nan"), TextFormat::kOpenMetrics);
}

}  // namespace
}  // namespace penstock::http
