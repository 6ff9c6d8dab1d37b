#include "simulated/request.h"

#include <gtest/gtest.h>

#include <ostream>

#include "support.h"

namespace penstock::replica::simulated {
namespace {

using replica::test::chat_request;

Ask read_fields(const std::string& fields, const Settings& settings = {}) {
  v1::CallRequest request = chat_request(fields);
  const auto read = read_request(&request, settings);
  const auto* error = std::get_if<v1::ErrorDetail>(&read);
  EXPECT_EQ(error, nullptr) << error->message();
  return error == nullptr ? std::get<Ask>(read) : Ask{};
}

v1::ErrorDetail error_of(v1::CallRequest request, const Settings& settings = {}) {
  const auto read = read_request(&request, settings);
  EXPECT_TRUE(std::holds_alternative<v1::ErrorDetail>(read));
  const auto* error = std::get_if<v1::ErrorDetail>(&read);
  return error == nullptr ? v1::ErrorDetail{} : *error;
}

v1::ErrorDetail error_of_body(const std::string& body, const std::string& path = "") {
  v1::CallRequest request = chat_request("");
  request.set_body(body);
  if (!path.empty()) request.set_path(path);
  return error_of(request);
}

TEST(Request, ReadsWhatTheAnswerDependsOn) {
  const Ask ask = read_fields(
      R"("model":"x","stream":true,"stream_options":{"include_usage":true},"max_tokens":7)");
  EXPECT_EQ(ask.endpoint, Endpoint::kChat);
  EXPECT_TRUE(ask.stream);
  EXPECT_TRUE(ask.include_usage);
  EXPECT_EQ(ask.max_tokens, 7u);
  EXPECT_EQ(ask.model, "x");
  EXPECT_EQ(ask.prompt_tokens, 2u);
}

TEST(Request, MaxCompletionTokensGoesBeforeMaxTokens) {
  EXPECT_EQ(read_fields(R"("max_tokens":7,"max_completion_tokens":3)").max_tokens, 3u);
}

TEST(Request, MoreThanTheBudgetIsRefusedWithBothNumbers) {
  v1::CallRequest request = chat_request(R"("max_tokens":7)");
  request.set_max_prompt_tokens(2);
  request.set_max_completion_tokens(7);
  EXPECT_TRUE(std::holds_alternative<Ask>(read_request(&request, {})));
  request.set_max_completion_tokens(6);
  const v1::ErrorDetail asked = error_of(request);
  EXPECT_EQ(asked.code(), "token_budget_exceeded");
  EXPECT_EQ(asked.param(), "max_tokens");
  EXPECT_EQ(asked.message(),
            "'max_tokens' is 7, at most 6 tokens are allowed here; ask for fewer.");
  request.set_max_prompt_tokens(1);
  const v1::ErrorDetail sent = error_of(request);
  EXPECT_EQ(sent.code(), "token_budget_exceeded");
  EXPECT_EQ(sent.param(), "messages");
  EXPECT_EQ(sent.message(), "The prompt has 2 tokens, at most 1 are allowed here; shorten it.");
}

TEST(Request, NullMeansNotGiven) {
  const Ask ask = read_fields(R"("max_tokens":null,"stream":null,"stop":null,"n":null)");
  EXPECT_EQ(ask.max_tokens, 0u);
  EXPECT_FALSE(ask.stream);
}

TEST(Request, TheSeedFollowsFromPromptAndAdapter) {
  v1::CallRequest base = chat_request("");
  v1::CallRequest same = chat_request(R"("temperature":0.3)");
  v1::CallRequest adapted = chat_request("");
  adapted.set_adapter("pirate@1");
  const uint64_t seed = std::get<Ask>(read_request(&base, {})).seed;
  EXPECT_EQ(std::get<Ask>(read_request(&same, {})).seed, seed);
  EXPECT_NE(std::get<Ask>(read_request(&adapted, {})).seed, seed);
}

TEST(Request, ReadsPartsAndMessagesWithoutContent) {
  v1::CallRequest request = chat_request("");
  request.set_body(R"({"messages":[
      {"role":"user","content":[{"type":"text","text":"one two"},{"type":"image_url"}]},
      {"role":"assistant","content":null,"tool_calls":[]}]})");
  EXPECT_EQ(std::get<Ask>(read_request(&request, {})).prompt_tokens, 4u);
}

TEST(Request, ReadsPromptsOfCompletions) {
  for (const char* body :
       {R"({"prompt":"a b c"})", R"({"prompt":["a b c"]})", R"({"prompt":[1,2,3]})"}) {
    v1::CallRequest request = chat_request("");
    request.set_path("/v1/completions");
    request.set_body(body);
    const Ask ask = std::get<Ask>(read_request(&request, {}));
    EXPECT_EQ(ask.prompt_tokens, 3u) << body;
    EXPECT_EQ(ask.endpoint, Endpoint::kCompletion);
  }
}

TEST(Request, LeavesTheBodyAsItWas) {
  v1::CallRequest request = chat_request(R"("max_tokens":7)");
  const std::string before = request.body();
  read_request(&request, {});
  EXPECT_EQ(request.body(), before);
}

struct Bad {
  const char* body;
  const char* code;
  const char* param;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.code << " " << bad.param; }

class BadRequests : public ::testing::TestWithParam<Bad> {};

TEST_P(BadRequests, AreTheClientsFaultAndNameTheField) {
  const v1::ErrorDetail error = error_of_body(GetParam().body);
  EXPECT_EQ(error.status(), 400u);
  EXPECT_EQ(error.fault(), v1::FAULT_CLIENT);
  EXPECT_EQ(error.retry(), v1::RETRY_NEVER);
  EXPECT_EQ(error.code(), GetParam().code) << error.message();
  EXPECT_EQ(error.param(), GetParam().param);
  EXPECT_FALSE(error.message().empty());
}

#define MESSAGES R"("messages":[{"role":"user","content":"x"}])"
INSTANTIATE_TEST_SUITE_P(
    Each, BadRequests,
    ::testing::Values(
        Bad{"", "invalid_json", ""}, Bad{"{", "invalid_json", ""}, Bad{"[1]", "invalid_json", ""},
        Bad{"{\"a\":\"\xff\"}", "invalid_json", ""}, Bad{"{} {}", "invalid_json", ""},
        Bad{"{}", "missing_required_parameter", "messages"},
        Bad{R"({"messages":[]})", "invalid_value", "messages"},
        Bad{R"({"messages":"x"})", "invalid_type", "messages"},
        Bad{R"({"messages":["x"]})", "invalid_type", "messages.0"},
        Bad{R"({"messages":[{"content":"x"}]})", "missing_required_parameter", "messages.0.role"},
        Bad{R"({"messages":[{"role":"user","content":3}]})", "invalid_type", "messages.0.content"},
        Bad{"{" MESSAGES R"(,"stream":"yes"})", "invalid_type", "stream"},
        Bad{"{" MESSAGES R"(,"max_tokens":0})", "invalid_value", "max_tokens"},
        Bad{"{" MESSAGES R"(,"max_tokens":-5})", "invalid_value", "max_tokens"},
        Bad{"{" MESSAGES R"(,"max_tokens":1.5})", "invalid_type", "max_tokens"},
        Bad{"{" MESSAGES R"(,"n":2})", "unsupported_parameter", "n"},
        Bad{"{" MESSAGES R"(,"stop":5})", "invalid_type", "stop"},
        Bad{"{" MESSAGES R"(,"stream_options":{}})", "invalid_value", "stream_options"},
        Bad{"{" MESSAGES R"(,"max_tokens":1048576})", "context_length_exceeded", "max_tokens"},
        Bad{"{" MESSAGES R"(,"simulate":{}})", "unsupported_parameter", "simulate"}));
#undef MESSAGES

TEST(Request, OtherPathsAndMethodsAreRefused) {
  const v1::ErrorDetail lacking = error_of_body("{}", "/v1/embeddings");
  EXPECT_EQ(lacking.status(), 400u);
  EXPECT_EQ(lacking.code(), "unsupported_endpoint");
  EXPECT_EQ(lacking.retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
  v1::CallRequest request = chat_request("");
  request.set_method("GET");
  EXPECT_EQ(error_of(request).status(), 405u);
}

TEST(Request, OfAFieldThatStandsTwiceTheLastCounts) {
  EXPECT_TRUE(read_fields(R"("stream":false,"stream":true)").stream);
  EXPECT_FALSE(read_fields(R"("stream":true,"stream":false)").stream);
}

TEST(Request, MayOverrideTheBehaviourWhereTheDeploymentAllowsIt) {
  Settings settings;
  settings.per_request = true;
  settings.behaviour.answer_tokens = 9;
  const Ask ask = read_fields(
      R"("simulate":{"ttft_ms":5,"tokens_per_second":2.5,"die_after_tokens":3})", settings);
  EXPECT_EQ(ask.behaviour.ttft_ms, 5u);
  EXPECT_EQ(ask.behaviour.tokens_per_second, 2.5);
  EXPECT_EQ(ask.behaviour.die_after_tokens, 3u);
  EXPECT_EQ(ask.behaviour.answer_tokens, 9u);
  EXPECT_EQ(error_of(chat_request(R"("simulate":{"speed":1})"), settings).param(),
            "simulate.speed");
  EXPECT_EQ(error_of(chat_request(R"("simulate":{"tokens_per_second":-1})"), settings).code(),
            "invalid_type");
}

TEST(Request, TheRefusedShareFollowsFromTheId) {
  int refused = 0;
  for (int i = 0; i < 1000; ++i) refused += is_refused("req_" + std::to_string(i), 0.25) ? 1 : 0;
  EXPECT_NEAR(refused, 250, 50);
  EXPECT_EQ(is_refused("req_1", 0.25), is_refused("req_1", 0.25));
  EXPECT_FALSE(is_refused("req_1", 0));
  EXPECT_TRUE(is_refused("req_1", 1));
}

}  // namespace
}  // namespace penstock::replica::simulated
