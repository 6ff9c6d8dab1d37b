#include "http/router.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::http {
namespace {

Page page_of(std::string_view method, std::string_view target) {
  const Match matched = match(method, target);
  const auto* found = std::get_if<Found>(&matched);
  EXPECT_NE(found, nullptr) << method << ' ' << target;
  return found == nullptr ? Page::kMetrics : found->page;
}

TEST(Router, FindsEveryEndpoint) {
  EXPECT_EQ(page_of("GET", "/v1/models"), Page::kModels);
  EXPECT_EQ(page_of("GET", "/livez"), Page::kLivez);
  EXPECT_EQ(page_of("GET", "/readyz"), Page::kReadyz);
  EXPECT_EQ(page_of("GET", "/ready"), Page::kReadyz);
  EXPECT_EQ(page_of("GET", "/startupz"), Page::kStartupz);
  EXPECT_EQ(page_of("GET", "/health"), Page::kHealth);
  EXPECT_EQ(page_of("GET", "/ping"), Page::kPing);
  EXPECT_EQ(page_of("POST", "/ping"), Page::kPing);
  EXPECT_EQ(page_of("GET", "/version"), Page::kVersion);
  EXPECT_EQ(page_of("GET", "/metrics"), Page::kMetrics);
  EXPECT_EQ(page_of("HEAD", "/livez"), Page::kLivez);
}

TEST(Router, FindsWhatModelsServeByAllNames) {
  for (const openai::Endpoint& endpoint : openai::endpoints()) {
    std::vector<std::string_view> names = {endpoint.path};
    for (const auto alias : endpoint.aliases) {
      if (!alias.empty()) names.push_back(alias);
    }
    for (const auto name : names) {
      const Match matched = match("POST", name);
      ASSERT_TRUE(std::holds_alternative<Found>(matched)) << name;
      EXPECT_EQ(std::get<Found>(matched).page, Page::kEndpoint) << name;
      EXPECT_EQ(std::get<Found>(matched).endpoint, &endpoint) << name;
      EXPECT_EQ(std::get<WrongMethod>(match("GET", name)).allow, "POST, OPTIONS") << name;
    }
  }
}

TEST(Router, LooksPastTheQuery) { EXPECT_EQ(page_of("GET", "/readyz?verbose=1"), Page::kReadyz); }

TEST(Router, DecodesModelIdsAndTakesRawSlashes) {
  const Match encoded = match("GET", "/v1/models/org%2Fadapter%20v1");
  EXPECT_EQ(std::get<Found>(encoded).page, Page::kModel);
  EXPECT_EQ(std::get<Found>(encoded).model_id, "org/adapter v1");
  const Match raw = match("GET", "/v1/models/org/adapter:one");
  EXPECT_EQ(std::get<Found>(raw).model_id, "org/adapter:one");
}

TEST(Router, NamesTheMethodsOfAPath) {
  const Match wrong = match("GET", "/v1/chat/completions");
  EXPECT_EQ(std::get<WrongMethod>(wrong).allow, "POST, OPTIONS");
  const Match other = match("DELETE", "/v1/models/x");
  EXPECT_EQ(std::get<WrongMethod>(other).allow, "GET, HEAD, OPTIONS");
}

TEST(Router, TellsWhatMayBeDoneAtAPath) {
  const auto allowed = [](std::string_view target) {
    return std::get<Options>(match("OPTIONS", target)).allow;
  };
  EXPECT_EQ(allowed("/v1/chat/completions"), "POST, OPTIONS");
  EXPECT_EQ(allowed("/v1/models?x=1"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(allowed("/v1/models/org/one"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(allowed("/ping"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(allowed("/nothing"), "");
}

TEST(Router, KnowsNothingElse) {
  for (const char* target :
       {"/", "/v1", "/v1/models/", "/v1/chat", "/v1/chat/completions/x", "*", "",
        "/v1/chat/completions/", "http://host", "/v1/responses/resp_1",
        "/v1/responses/resp_1/cancel", "/v1/messages/batches", "/v1/audio/speech", "/v1/files"}) {
    EXPECT_TRUE(std::holds_alternative<NotFound>(match("POST", target))) << target;
  }
}

}  // namespace
}  // namespace penstock::http
