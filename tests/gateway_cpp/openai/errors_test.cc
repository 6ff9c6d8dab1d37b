#include "openai/errors.h"

#include <gtest/gtest.h>

namespace penstock::openai {
namespace {

using base::Kind;
using base::make_error;

std::string header(const base::Error& error, std::string_view name) {
  for (const Header& header : error_headers(error)) {
    if (header.name == name) return header.value;
  }
  return "absent";
}

TEST(Errors, TheBodyHasAllFourKeys) {
  EXPECT_EQ(error_body(make_error(Kind::kModelNotFound, "no \"x\"", "model")),
            R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model",)"
            R"("code":"model_not_found"}})");
}

TEST(Errors, AnEmptyParamIsNull) {
  EXPECT_EQ(error_body(make_error(Kind::kUpstreamFailed, "gone")),
            R"({"error":{"message":"gone","type":"server_error","param":null,)"
            R"("code":"upstream_error"}})");
}

TEST(Errors, AnEventIsOneDataLineWhateverTheMessage) {
  EXPECT_EQ(error_event(make_error(Kind::kInternal, "a\n\nb")),
            R"(data: {"error":{"message":"a\n\nb","type":"server_error","param":null,)"
            R"("code":"internal_error"}})"
            "\n\n");
}

TEST(Errors, SaysWhetherToRetryOnEveryError) {
  EXPECT_EQ(header(make_error(Kind::kInvalidJson, ""), "x-should-retry"), "false");
  EXPECT_EQ(header(make_error(Kind::kOverloaded, ""), "x-should-retry"), "true");
  EXPECT_EQ(header(make_error(Kind::kOverloaded, ""), "retry-after"), "absent");
}

TEST(Errors, RetryAfterIsOneToSixtyWholeSeconds) {
  base::Error error = make_error(Kind::kOverloaded, "");
  error.retry_after = std::chrono::milliseconds(1);
  EXPECT_EQ(header(error, "retry-after"), "1");
  EXPECT_EQ(header(error, "retry-after-ms"), "1");
  error.retry_after = std::chrono::milliseconds(2500);
  EXPECT_EQ(header(error, "retry-after"), "3");
  error.retry_after = std::chrono::hours(1);
  EXPECT_EQ(header(error, "retry-after"), "60");
  EXPECT_EQ(header(error, "retry-after-ms"), "60000");
}

TEST(Errors, SaysTheWholeTimeWhereTryingAgainSoonIsOfNoUse) {
  base::Error error = make_error(Kind::kInsufficientQuota, "");
  error.retry_after = std::chrono::hours(12);
  EXPECT_EQ(header(error, "x-should-retry"), "false");
  EXPECT_EQ(header(error, "retry-after"), "43200");
  EXPECT_EQ(header(error, "retry-after-ms"), "43200000");
}

TEST(Errors, WhoIsAskedForAKeyIsToldHowToShowIt) {
  EXPECT_EQ(header(make_error(Kind::kInvalidApiKey, ""), "www-authenticate"),
            R"(Bearer realm="penstock")");
  EXPECT_EQ(header(make_error(Kind::kPermissionDenied, ""), "www-authenticate"), "absent");
}

TEST(Errors, TellsWhyAdmissionSaidNo) {
  base::Error error = make_error(Kind::kShedLoad, "");
  EXPECT_EQ(header(error, "x-penstock-drop-reason"), "absent");
  error.drop_reason = "replicas_full";
  EXPECT_EQ(header(error, "x-penstock-drop-reason"), "replicas_full");
}

}  // namespace
}  // namespace penstock::openai
