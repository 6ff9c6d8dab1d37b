#include "observe/otlp_reply.h"

#include <gtest/gtest.h>

#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;

TEST(OtlpReply, IsTriedAgainOnlyWhereTheProtocolSaysSo) {
  for (const unsigned status : {0U, 429U, 502U, 503U, 504U}) {
    EXPECT_EQ(verdict_of({.status = status}), PostVerdict::kAgain) << status;
  }
  for (const unsigned status : {301U, 400U, 401U, 404U, 413U, 500U, 501U}) {
    EXPECT_EQ(verdict_of({.status = status}), PostVerdict::kRefused) << status;
  }
  EXPECT_EQ(verdict_of({.status = 200}), PostVerdict::kTaken);
  EXPECT_EQ(verdict_of({.status = 202}), PostVerdict::kTaken);
}

TEST(OtlpReply, TellsOfSpansThatWereThrownAway) {
  otlp::ExportTraceServiceResponse told;
  told.mutable_partial_success()->set_rejected_spans(7);
  EXPECT_EQ(rejected_spans({.status = 200, .body = told.SerializeAsString()}), 7U);
  EXPECT_EQ(rejected_spans({.status = 200}), 0U);
  told.mutable_partial_success()->set_rejected_spans(-1);
  EXPECT_EQ(rejected_spans({.status = 200, .body = told.SerializeAsString()}), 0U);
  EXPECT_EQ(rejected_spans({.status = 200, .body = "<html>"}), 0U);
}

TEST(OtlpReply, IsWaitedForAsTheCollectorAsksWithinBounds) {
  const WaitRule rule{milliseconds(1'000), 9};
  EXPECT_EQ(wait_after(1, {.retry_after = milliseconds(7'000)}, rule), milliseconds(7'000));
  EXPECT_EQ(wait_after(1, {.retry_after = std::chrono::hours(1)}, rule), milliseconds(30'000));
}

TEST(OtlpReply, IsWaitedForEverLongerSomeMoreAndSomeLess) {
  const milliseconds first(1'000);
  EXPECT_EQ(wait_after(1, {}, {first, 200}), milliseconds(1'000));
  EXPECT_EQ(wait_after(3, {}, {first, 200}), milliseconds(4'000));
  EXPECT_EQ(wait_after(99, {}, {first, 200}), milliseconds(30'000));
  EXPECT_EQ(wait_after(1, {}, {first, 0}), milliseconds(800));
  EXPECT_EQ(wait_after(1, {}, {first, 400}), milliseconds(1'200));
}

}  // namespace
}  // namespace penstock::observe
