#include "proxy/upstream_error.h"

#include <gtest/gtest.h>

namespace penstock::proxy {
namespace {

v1::ErrorDetail detail(uint32_t status, v1::Fault fault) {
  v1::ErrorDetail detail;
  detail.set_status(status);
  detail.set_type("some_error");
  detail.set_code("some_code");
  detail.set_param("messages");
  detail.set_message("what happened");
  detail.set_fault(fault);
  return detail;
}

TEST(UpstreamError, KeepsWhatTheReplicaSaid) {
  const auto error = to_error(detail(400, v1::FAULT_CLIENT));
  EXPECT_EQ(error.status, 400U);
  EXPECT_EQ(error.type, "some_error");
  EXPECT_EQ(error.code, "some_code");
  EXPECT_EQ(error.param, "messages");
  EXPECT_EQ(error.message, "what happened");
  EXPECT_EQ(error.fault, base::Fault::kClient);
  EXPECT_FALSE(error.client_may_retry);
}

TEST(UpstreamError, LetsClientsRetryWhatMayPass) {
  EXPECT_TRUE(to_error(detail(503, v1::FAULT_UPSTREAM)).client_may_retry);
  EXPECT_TRUE(to_error(detail(429, v1::FAULT_UPSTREAM)).client_may_retry);
  EXPECT_FALSE(to_error(detail(422, v1::FAULT_UPSTREAM)).client_may_retry);
}

TEST(UpstreamError, TellsClientsNotToRetryWhatOnlyAnOperatorCanMend) {
  for (const uint32_t status : {429U, 502U}) {
    const auto error = to_error(detail(status, v1::FAULT_OPERATOR));
    EXPECT_FALSE(error.client_may_retry);
    EXPECT_EQ(error.fault, base::Fault::kUpstream);
  }
}

TEST(UpstreamError, TurnsASenselessStatusIntoABadGateway) {
  EXPECT_EQ(to_error(detail(0, v1::FAULT_UPSTREAM)).status, 502U);
  EXPECT_EQ(to_error(detail(200, v1::FAULT_UPSTREAM)).status, 502U);
  EXPECT_EQ(to_error(detail(999, v1::FAULT_UPSTREAM)).status, 502U);
}

TEST(UpstreamError, PassesTheTimeToWait) {
  auto later = detail(503, v1::FAULT_UPSTREAM);
  later.set_retry_after_ms(1500);
  EXPECT_EQ(to_error(later).retry_after, std::chrono::milliseconds(1500));
}

TEST(UpstreamError, KnowsWhenAnAdapterMayBeLoadedAfterAll) {
  auto error = detail(503, v1::FAULT_UPSTREAM);
  const auto wait = [&error](const std::string& code) {
    error.set_code(code);
    return to_error(error).retry_after.count();
  };
  EXPECT_EQ(wait("adapter_slots_full"), 1000);
  EXPECT_EQ(wait("adapter_load_timeout"), 5000);
  EXPECT_EQ(wait("adapter_load_failed"), 0);
  EXPECT_EQ(wait("adapter_mismatch"), 0);
  error.set_retry_after_ms(1500);
  EXPECT_EQ(wait("adapter_slots_full"), 1500) << "as the replica says";
}

}  // namespace
}  // namespace penstock::proxy
