#include "control_plane/deployment_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::control_plane {
namespace {

TEST(CanaryReports, TellWhatThereIsOfEachArmInOrder) {
  admission::CanaryRow row{.uid = "u1", .name = "next", .step = 2, .stable = {}, .candidate = {}};
  row.candidate.sessions = 3;
  row.candidate.bad_sessions = 2;
  row.candidate.errors = {1, 0, 0, 0, 0, 1};
  row.candidate.answered_sessions = 1;
  row.candidate.total[8] = 1;
  row.candidate.total[200] = 4;
  row.candidate.finishes = {0, 0, 0, 5, 0, 6, 0};
  row.candidate.saved = 2;
  row.candidate.saved_sessions = 1;
  v1::GatewayReport report;
  add_canaries(std::vector{row}, report);
  ASSERT_EQ(report.canaries_size(), 1);
  const v1::CanaryReport& told = report.canaries(0);
  EXPECT_EQ(told.uid(), "u1");
  EXPECT_EQ(told.step(), 2U);
  EXPECT_EQ(told.stable().sessions(), 0U);
  EXPECT_EQ(told.stable().errors_size(), 0);
  const v1::CanaryArm& arm = told.candidate();
  EXPECT_EQ(arm.sessions(), 3U);
  ASSERT_EQ(arm.errors_size(), 2);
  EXPECT_EQ(arm.errors(0).reason(), "5xx");
  EXPECT_EQ(arm.errors(1).reason(), "timeout");
  ASSERT_EQ(arm.total().bins_size(), 2);
  EXPECT_EQ(arm.total().bins(1), 200U);
  EXPECT_EQ(arm.total().counts(1), 4U);
  ASSERT_EQ(arm.finishes_size(), 2);
  EXPECT_EQ(arm.finishes(0).reason(), "length");
  EXPECT_EQ(arm.finishes(1).count(), 6U);
  EXPECT_EQ(arm.saved(), 2U);
  EXPECT_EQ(arm.saved_sessions(), 1U);
}

}  // namespace
}  // namespace penstock::control_plane
