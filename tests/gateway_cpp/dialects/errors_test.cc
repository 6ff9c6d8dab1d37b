#include "dialects/errors.h"

#include <gtest/gtest.h>

namespace penstock::dialects {
namespace {

using openai::Dialect;

TEST(DialectErrors, AreBodiesInTheWordsOfTheEndpoint) {
  const auto error = base::make_error(base::Kind::kModelNotFound, "no such model", "model");
  const std::string openai =
      R"({"error":{"message":"no such model","type":"invalid_request_error",)"
      R"("param":"model","code":"model_not_found"}})";
  EXPECT_EQ(error_body(Dialect::kOpenAi, error, "req_1"), openai);
  EXPECT_EQ(error_body(Dialect::kResponses, error, "req_1"), openai);
  EXPECT_EQ(error_body(Dialect::kAnthropic, error, "req_1"),
            R"({"type":"error","error":{"type":"not_found_error","message":"no such model"},)"
            R"("request_id":"req_1"})");
}

}  // namespace
}  // namespace penstock::dialects
