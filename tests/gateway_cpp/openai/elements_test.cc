#include "openai/elements.h"

#include <gtest/gtest.h>

#include <string_view>

#include "openai/request.h"

namespace penstock::openai {
namespace {

constexpr base::BodyElements kFew{.messages = 3, .parts = 4, .tools = 2, .values = 100};

// What a body is told at an endpoint; empty: it is taken.
base::Error refusal(std::string_view path, std::string body) {
  RequestParser parser;
  const auto request = parser.parse(*find_endpoint(path), body, kFew);
  return request ? base::Error{} : request.error();
}

std::string listed(std::string_view element, std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) list.append(i == 0 ? "" : ",").append(element);
  return list + "]";
}

std::string with(std::string_view field, const std::string& value) {
  return R"({"model":"m",")" + std::string(field) + "\":" + value + "}";
}

TEST(Elements, NameFieldCountLimitAndFlagWhereThereAreTooMany) {
  const base::Error error =
      refusal("/v1/chat/completions", with("messages", listed(R"({"role":"user"})", 5)));
  EXPECT_EQ(error.status, 400U);
  EXPECT_EQ(error.code, "invalid_value");
  EXPECT_EQ(error.param, "messages");
  EXPECT_EQ(error.message,
            "'messages' is too much at once: with it the body has 5 messages, items or texts, at "
            "most 3 are taken (--body-messages of the gateway); send fewer");
}

TEST(Elements, OfListsOfTheBodyAreMessagesAtEveryEndpoint) {
  struct Case {
    std::string_view path;
    std::string_view field;
    std::string_view element;
  };
  for (const Case& at : {
           Case{"/v1/chat/completions", "messages", R"({"role":"user"})"},
           Case{"/v1/messages", "messages", R"({"role":"user"})"},
           Case{"/v1/messages/count_tokens", "messages", R"({"role":"user"})"},
           Case{"/v1/responses", "input", R"({"role":"user"})"},
           Case{"/v1/responses/input_tokens", "input", R"({"role":"user"})"},
           Case{"/v1/completions", "prompt", R"("a")"},
           Case{"/v1/completions", "prompt", "[1]"},
           Case{"/v1/embeddings", "input", R"("a")"},
           Case{"/v1/score", "text_2", R"("a")"},
           Case{"/v1/rerank", "documents", R"("a")"},
           Case{"/classify", "input", R"("a")"},
           Case{"/pooling", "input", R"("a")"},
           Case{"/tokenize", "messages", R"({"role":"user"})"},
       }) {
    EXPECT_EQ(refusal(at.path, with(at.field, listed(at.element, 3))).message, "") << at.path;
    EXPECT_EQ(refusal(at.path, with(at.field, listed(at.element, 4))).param, at.field) << at.path;
  }
}

TEST(Elements, OfAllFieldsCountTogether) {
  const std::string body = R"({"messages":[{},{}],"system":[{"text":"a"},{"text":"b"}]})";
  EXPECT_EQ(refusal("/v1/messages", body).param, "system");
}

TEST(Elements, OfListsInMessagesAreParts) {
  const auto chat = [](const std::string& content) {
    return refusal("/v1/chat/completions", with("messages", R"([{"content":)" + content + "}]"));
  };
  for (const char* part : {R"({"type":"text","text":"a"})", R"("a")"}) {
    EXPECT_EQ(chat(listed(part, 4)).message, "") << part;
    EXPECT_NE(chat(listed(part, 5)).message.find("5 content parts"), std::string::npos) << part;
  }
  const std::string result = R"([{"type":"tool_result","content":)" + listed("{}", 4) + "}]";
  EXPECT_NE(chat(result).message.find("5 content parts"), std::string::npos);
}

// A tool's input and its schema have lists of their own, of which the loop knows nothing.
TEST(Elements, DeepInsideAPartAreValuesAlone) {
  const std::string input = R"([{"content":[{"input":{"todos":)" + listed("{}", 50) + "}}]}]";
  EXPECT_EQ(refusal("/v1/messages", with("messages", input)).message, "");
  const std::string tools = R"([{"parameters":{"required":)" + listed(R"("a")", 50) + "}}]";
  EXPECT_EQ(refusal("/v1/responses", R"({"input":"a","tools":)" + tools + "}").message, "");
}

TEST(Elements, OfToolsAndFunctionsAreTools) {
  for (const char* field : {"tools", "functions"}) {
    const auto asked = [field](std::size_t count) {
      return refusal("/v1/chat/completions", R"({"messages":[{}],")" + std::string(field) +
                                                 "\":" + listed("{}", count) + "}");
    };
    EXPECT_EQ(asked(2).message, "");
    EXPECT_EQ(asked(3).param, field);
    EXPECT_NE(asked(3).message.find("3 tools"), std::string::npos);
  }
}

TEST(Elements, OfAnyKindAndDepthAreValues) {
  EXPECT_EQ(refusal("/v1/completions", with("prompt", listed("7", 98))).message, "");
  EXPECT_NE(refusal("/v1/completions", with("prompt", listed("7", 99))).message.find("101 values"),
            std::string::npos);
  std::string members = R"({"a":1)";
  for (int i = 0; i < 100; ++i) members += R"(,"a":1)";
  const base::Error deep = refusal(
      "/v1/chat/completions", R"({"messages":[{}],"response_format":{"schema":)" + members + "}}}");
  EXPECT_EQ(deep.param, "response_format");
}

TEST(Elements, AreCountedOfAFieldThatComesTwiceAsOftenAsItDoes) {
  std::string body = R"({"messages":[{},{}],"messages":[{},{}]})";
  EXPECT_EQ(refusal("/v1/chat/completions", body).param, "messages");
}

TEST(Elements, OfJsonThatIsBrokenAreNotToldOf) {
  EXPECT_EQ(refusal("/v1/completions", R"({"prompt":)" + listed("7", 200)).code, "invalid_json");
}

}  // namespace
}  // namespace penstock::openai
