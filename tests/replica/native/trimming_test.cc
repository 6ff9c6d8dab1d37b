#include "simulated/trimming.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "simulated/request.h"
#include "support.h"

namespace penstock::replica::simulated {
namespace {

using replica::test::chat_request;

Message said(std::string_view role, uint32_t tokens, bool pinned = false) {
  Message message;
  message.role = role;
  message.tokens = tokens;
  message.pinned = pinned;
  return message;
}

Message calls(std::vector<std::string_view> ids) {
  Message message = said("assistant", 1);
  message.calls = std::move(ids);
  return message;
}

Message result(std::string_view id, bool pinned = false) {
  Message message = said("tool", 1, pinned);
  message.result_of = id;
  return message;
}

// One letter for each message: what stays as "x", what goes as ".", and "-" for what cannot fit.
std::string kept(const std::vector<Message>& messages, uint64_t budget) {
  const auto stays = fitted(messages, budget);
  if (!stays) return "-";
  std::string shown;
  for (const bool stay : *stays) shown += stay ? 'x' : '.';
  return shown;
}

TEST(Trimming, TheOldestTurnsGoFirstAndNoMoreThanMust) {
  const std::vector<Message> messages = {said("user", 5), said("assistant", 5), said("user", 5),
                                         said("assistant", 5), said("user", 5)};
  EXPECT_EQ(kept(messages, 25), "xxxxx");
  EXPECT_EQ(kept(messages, 24), "..xxx");
  EXPECT_EQ(kept(messages, 15), "..xxx");
  EXPECT_EQ(kept(messages, 14), "....x");
  EXPECT_EQ(kept(messages, 5), "....x");
  EXPECT_EQ(kept(messages, 4), "-");
  EXPECT_EQ(kept({}, 0), "");
}

TEST(Trimming, SystemDeveloperAndPinnedMessagesStay) {
  const std::vector<Message> messages = {
      said("system", 1), said("user", 1),       said("developer", 1), said("assistant", 1, true),
      said("user", 1),   said("assistant", 1),  said("system", 1),    said("user", 1, true),
      said("user", 1),   said("assistant", 100)};
  EXPECT_EQ(kept(messages, 106), "x.xx..xxxx");
}

TEST(Trimming, ACallAndItsResultsStayTogether) {
  const std::vector<Message> pinned = {said("user", 1),   calls({"a", "b"}),    result("a"),
                                       result("b", true), said("assistant", 1), said("user", 1)};
  EXPECT_EQ(kept(pinned, 4), ".xxx.x");
  const std::vector<Message> apart = {said("user", 1), calls({"a"}), said("user", 1), result("a"),
                                      said("user", 1)};
  EXPECT_EQ(kept(apart, 4), "....x");
}

TEST(Trimming, OfAnIdThatComesAgainTheNewestCallIsMeant) {
  const std::vector<Message> messages = {said("user", 1), calls({"a"}), result("a"),
                                         said("user", 1), calls({"a"}), result("a"),
                                         said("user", 1)};
  EXPECT_EQ(kept(messages, 6), "...xxxx");
}

// Three turns of three tokens each behind a system message of two, a role being one.
const char* const kTurns = R"({"messages":[{"role":"system","content":"s"},
    {"role":"user","content":"one two"},{"role":"user","content":"three four"},
    {"role":"user","content":"five six"}])";

v1::CallRequest trimmed_request(const std::string& more, uint32_t max_prompt_tokens) {
  v1::CallRequest request = chat_request("");
  request.set_body(kTurns + more + "}");
  request.set_max_prompt_tokens(max_prompt_tokens);
  request.set_trim(true);
  return request;
}

TEST(Trimming, ACallThatAllowsItLosesWhatItsBudgetDoesNotTake) {
  v1::CallRequest request = trimmed_request("", 10);
  const Ask ask = std::get<Ask>(read_request(&request, {}));
  EXPECT_EQ(ask.prompt_tokens, 8u);
  EXPECT_EQ(ask.trimmed_messages, 1u);
  EXPECT_EQ(ask.trimmed_tokens, 3u);
  v1::CallRequest shorter = chat_request("");
  shorter.set_body(R"({"messages":[{"role":"system","content":"s"},
      {"role":"user","content":"three four"},{"role":"user","content":"five six"}]})");
  EXPECT_EQ(std::get<Ask>(read_request(&shorter, {})).seed, ask.seed);
}

TEST(Trimming, WithoutABudgetTheModelsContextCountsLessWhatIsAskedFor) {
  Settings settings;
  settings.max_model_len = 12;
  v1::CallRequest request = trimmed_request(R"(,"max_tokens":4)", 0);
  const Ask ask = std::get<Ask>(read_request(&request, settings));
  EXPECT_EQ(ask.prompt_tokens, 8u);
  EXPECT_EQ(ask.trimmed_messages, 1u);
  request = trimmed_request("", 0);
  EXPECT_EQ(std::get<Ask>(read_request(&request, settings)).trimmed_messages, 0u);
}

TEST(Trimming, WhatHasToStayAndIsTooMuchIsRefusedAsItIsWithoutTrimming) {
  v1::CallRequest request = trimmed_request("", 4);
  const auto refused = std::get<v1::ErrorDetail>(read_request(&request, {}));
  EXPECT_EQ(refused.code(), "token_budget_exceeded");
  EXPECT_EQ(refused.message(), "The prompt has 11 tokens, at most 4 are allowed here; shorten it.");
}

TEST(Trimming, AMarkPinsAMessageAndIsNeverAnError) {
  v1::CallRequest request = chat_request("");
  request.set_max_prompt_tokens(6);
  request.set_trim(true);
  request.set_body(R"({"messages":[{"role":"user","content":"one two","penstock":{"pin":true}},
      {"role":"user","content":"three four","penstock":{"pin":"yes"}},
      {"role":"user","content":"five six","penstock":7}]})");
  const Ask ask = std::get<Ask>(read_request(&request, {}));
  EXPECT_EQ(ask.trimmed_messages, 1u);
  EXPECT_EQ(ask.prompt_tokens, 6u);
}

}  // namespace
}  // namespace penstock::replica::simulated
