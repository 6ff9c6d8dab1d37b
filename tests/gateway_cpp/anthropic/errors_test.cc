#include "anthropic/errors.h"

#include <gtest/gtest.h>

namespace penstock::anthropic {
namespace {

std::string body_of(unsigned status) {
  base::Error error = base::make_error(base::Kind::kInternal, "a \"quoted\" word");
  error.status = status;
  return error_body(error, "req_1");
}

TEST(AnthropicErrors, AreOneObjectWithTypeMessageAndRequest) {
  EXPECT_EQ(body_of(400), R"({"type":"error","error":{"type":"invalid_request_error",)"
                          R"("message":"a \"quoted\" word"},"request_id":"req_1"})");
}

TEST(AnthropicErrors, APromptThatIsTooLongIsSaidInTheWordsThatClientsShortenTheirsOn) {
  auto error = base::make_error(base::Kind::kTokenBudget, "The prompt has 9 tokens.", "messages");
  EXPECT_NE(error_body(error, "r").find(R"("prompt is too long: The prompt has 9)"),
            std::string::npos);
  error.param = "max_tokens";
  EXPECT_EQ(error_body(error, "r").find("too long"), std::string::npos);
  error.code = "context_length_exceeded";
  EXPECT_NE(error_event(error, "r").find(R"("prompt is too long: The prompt)"), std::string::npos);
}

struct Case {
  unsigned status;
  const char* type;
};

class ErrorType : public testing::TestWithParam<Case> {};

TEST_P(ErrorType, GoesByTheStatus) {
  const std::string body = body_of(GetParam().status);
  const std::string wanted = std::string(R"("error":{"type":")") + GetParam().type + '"';
  EXPECT_NE(body.find(wanted), std::string::npos) << body;
}

INSTANTIATE_TEST_SUITE_P(
    Statuses, ErrorType,
    testing::Values(Case{400, "invalid_request_error"}, Case{401, "authentication_error"},
                    Case{403, "permission_error"}, Case{404, "not_found_error"},
                    Case{405, "invalid_request_error"}, Case{408, "timeout_error"},
                    Case{413, "request_too_large"}, Case{415, "invalid_request_error"},
                    Case{429, "rate_limit_error"}, Case{500, "api_error"}, Case{502, "api_error"},
                    Case{503, "overloaded_error"}, Case{504, "timeout_error"},
                    Case{529, "overloaded_error"}));

TEST(AnthropicErrors, AreNamedEventsInAStream) {
  const auto error = base::make_error(base::Kind::kDraining, "it ends");
  EXPECT_EQ(error_event(error, "req_1"),
            "event: error\ndata: " + error_body(error, "req_1") + "\n\n");
}

}  // namespace
}  // namespace penstock::anthropic
