#include "openai/endpoints.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock::openai {
namespace {

TEST(Endpoints, EachNameLeadsToOneRow) {
  std::set<std::string_view> names;
  for (const Endpoint& endpoint : endpoints()) {
    EXPECT_TRUE(names.insert(endpoint.path).second) << endpoint.path;
    EXPECT_EQ(find_endpoint(endpoint.path), &endpoint);
    for (const auto alias : endpoint.aliases) {
      if (alias.empty()) continue;
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(find_endpoint(alias), &endpoint);
    }
  }
}

TEST(Endpoints, KnowNoOtherNames) {
  for (const char* path :
       {"", "/", "/v1", "/v1/chat", "/v1/responses/x", "/v1/chat/completions/"}) {
    EXPECT_EQ(find_endpoint(path), nullptr) << path;
  }
}

TEST(Endpoints, InsistOnPromptsOnlyWhereTheyNameTheField) {
  for (const Endpoint& endpoint : endpoints()) {
    EXPECT_EQ(endpoint.prompt == Prompt::kUnread, endpoint.prompt_field.empty()) << endpoint.path;
  }
}

TEST(Endpoints, SpeakTheirDialectOnUnknownPathsBelowThemToo) {
  EXPECT_EQ(dialect_at("/v1/messages?beta=true"), Dialect::kAnthropic);
  EXPECT_EQ(dialect_at("/v1/messages/count_tokens"), Dialect::kAnthropic);
  EXPECT_EQ(dialect_at("/v1/messages/batches"), Dialect::kAnthropic);
  EXPECT_EQ(dialect_at("/v1/responses"), Dialect::kResponses);
  EXPECT_EQ(dialect_at("/v1/embeddings"), Dialect::kOpenAi);
  EXPECT_EQ(dialect_at("/nothing"), Dialect::kOpenAi);
  EXPECT_EQ(dialect_at(""), Dialect::kOpenAi);
}

TEST(Endpoints, ListWhatIsServedWhereNothingIs) {
  const std::string message = nothing_at("POST", "/v1/audio/speech");
  EXPECT_NE(message.find("POST /v1/audio/speech"), std::string::npos) << message;
  EXPECT_NE(message.find("/v1/models/{id}"), std::string::npos) << message;
  for (const Endpoint& endpoint : endpoints()) {
    EXPECT_NE(message.find(endpoint.path), std::string::npos) << message;
  }
  EXPECT_LT(nothing_at("GET", std::string(100'000, '/')).size(), 1000U);
}

TEST(Endpoints, SayThatResponsesAreNotKept) {
  for (const char* path : {"/v1/responses/resp_1", "/v1/responses/resp_1/cancel",
                           "/v1/responses/resp_1/input_items"}) {
    const std::string message = nothing_at("GET", path);
    EXPECT_NE(message.find("keeps no responses"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace penstock::openai
