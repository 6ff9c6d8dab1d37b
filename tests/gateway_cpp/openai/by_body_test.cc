#include "openai/by_body.h"

#include <gtest/gtest.h>

#include "openai/request.h"

namespace penstock::openai {
namespace {

const Endpoint& kInvocations = *find_endpoint("/invocations");

base::Result<Request> invoked(std::string body) {
  RequestParser parser;
  return parser.parse(kInvocations, body, {});
}

base::Error invocation_failure(const std::string& body) {
  const auto request = invoked(body);
  if (request) {
    ADD_FAILURE() << "accepted: " << body;
    return {};
  }
  return request.error();
}

TEST(ByBody, IsChatWithMessages) {
  const auto request = invoked(
      R"({"stream":true,"messages":[{"role":"user"}],"max_tokens":1,"max_completion_tokens":2})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->endpoint, find_endpoint("/v1/chat/completions"));
  EXPECT_EQ(request->form, AnswerForm::kStream);
  EXPECT_EQ(request->max_tokens, 2U);
}

TEST(ByBody, IsCompletionsWithAPrompt) {
  const auto request = invoked(R"({"model":"mini","prompt":["a","b"],"n":3,"stop":[]})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->endpoint, find_endpoint("/v1/completions"));
  EXPECT_EQ(request->model, "mini");
  EXPECT_EQ(request->answers(), 6U);
}

TEST(ByBody, PassesOverWhatIsNull) {
  const auto request = invoked(R"({"messages":null,"prompt":"a"})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->endpoint, find_endpoint("/v1/completions"));
}

TEST(ByBody, OfAKeyThatComesTwiceTheLastCounts) {
  const auto request = invoked(R"({"messages":[{}],"prompt":"a","messages":null})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->endpoint, find_endpoint("/v1/completions"));
}

TEST(ByBody, SaysWhatIsMissing) {
  for (const char* body :
       {"{}", R"({"inputs":"hi","parameters":{}})", R"({"x":{"messages":[{}],"prompt":"a"}})"}) {
    const auto error = invocation_failure(body);
    EXPECT_EQ(error.kind, base::Kind::kMissingParameter) << body;
    EXPECT_NE(error.message.find("'messages' or 'prompt' is missing"), std::string::npos);
  }
}

TEST(ByBody, DoesNotChooseBetweenTheTwo) {
  const auto error = invocation_failure(R"({"messages":[{"role":"user"}],"prompt":"a"})");
  EXPECT_EQ(error.kind, base::Kind::kInvalidValue);
  EXPECT_NE(error.message.find("both"), std::string::npos);
}

TEST(ByBody, IsAsStrictAsTheEndpointItself) {
  EXPECT_EQ(invocation_failure(R"({"messages":"hi"})").kind, base::Kind::kInvalidType);
  EXPECT_EQ(invocation_failure(R"({"messages":[]})").kind, base::Kind::kInvalidValue);
  for (const char* body : {"", "[]", "nonsense", R"({"prompt":"a")", R"({"prompt":"a"}{})",
                           R"({"messages":[{]})", R"({"prompt)"}) {
    EXPECT_EQ(invocation_failure(body).kind, base::Kind::kInvalidJson) << body;
  }
}

}  // namespace
}  // namespace penstock::openai
