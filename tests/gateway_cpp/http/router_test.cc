#include "http/router.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

Page page_of(std::string_view method, std::string_view target) {
  const Match matched = match(method, target);
  const auto* found = std::get_if<Found>(&matched);
  EXPECT_NE(found, nullptr) << method << ' ' << target;
  return found == nullptr ? Page::kMetrics : found->page;
}

TEST(Router, FindsEveryEndpoint) {
  EXPECT_EQ(page_of("POST", "/v1/chat/completions"), Page::kChatCompletions);
  EXPECT_EQ(page_of("POST", "/v1/completions"), Page::kCompletions);
  EXPECT_EQ(page_of("GET", "/v1/models"), Page::kModels);
  EXPECT_EQ(page_of("GET", "/livez"), Page::kLivez);
  EXPECT_EQ(page_of("GET", "/readyz"), Page::kReadyz);
  EXPECT_EQ(page_of("GET", "/health"), Page::kReadyz);
  EXPECT_EQ(page_of("GET", "/metrics"), Page::kMetrics);
  EXPECT_EQ(page_of("HEAD", "/livez"), Page::kLivez);
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

TEST(Router, AnswersBrowsersThatAskFirst) {
  for (const char* target : {"/v1/chat/completions", "/nothing", "*"}) {
    EXPECT_TRUE(std::holds_alternative<Preflight>(match("OPTIONS", target))) << target;
  }
}

TEST(Router, KnowsNothingElse) {
  for (const char* target : {"/", "/v1", "/v1/models/", "/v1/chat", "/v1/chat/completions/x", "*",
                             "", "/v1/chat/completions/", "http://host"}) {
    EXPECT_TRUE(std::holds_alternative<NotFound>(match("POST", target))) << target;
  }
}

}  // namespace
}  // namespace penstock::http
