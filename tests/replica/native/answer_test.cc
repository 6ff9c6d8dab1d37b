#include "simulated/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated/words.h"
#include "support.h"

namespace penstock::replica::simulated {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kCreated = 1700000000;

v1::CallRequest request_for(Endpoint endpoint) {
  v1::CallRequest request;
  request.set_request_id("req_1");
  request.set_model("m");
  request.set_path(endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions");
  return request;
}

Ask ask_for(Endpoint endpoint, uint32_t max_tokens) {
  Ask ask;
  ask.endpoint = endpoint;
  ask.stream = true;
  ask.max_tokens = max_tokens;
  ask.prompt_tokens = 4;
  ask.seed = 1;
  return ask;
}

News whole(const Answer& answer) {
  News news;
  answer.add_begin(&news);
  answer.add_words(0, answer.tokens(), &news);
  answer.add_end(&news);
  return news;
}

uint32_t events_in(const News& news) {
  uint32_t events = 0;
  for (const Piece& piece : news.pieces) events += piece.events;
  return events;
}

TEST(Answer, WithoutALimitOfItsOwnARequestGetsTheCallsOwn) {
  Ask ask = ask_for(Endpoint::kChat, 0);
  ask.most_tokens = 5;
  const Answer cut(request_for(Endpoint::kChat), ask, kCreated);
  EXPECT_EQ(cut.tokens(), 5u);
  EXPECT_EQ(cut.finish_reason(), "length");
  ask.most_tokens = 64;
  const Answer whole(request_for(Endpoint::kChat), ask, kCreated);
  EXPECT_EQ(whole.tokens(), 64u);
  EXPECT_EQ(whole.finish_reason(), "stop");
}

TEST(Answer, AChatStreamIsByteForByteWhatOpenAiSends) {
  const Answer answer(request_for(Endpoint::kChat), ask_for(Endpoint::kChat, 1), kCreated);
  const std::string identity =
      R"({"id":"chatcmpl-req_1","object":"chat.completion.chunk","created":1700000000,"model":"m",)";
  const std::string word(word_at(1, 0).text);
  EXPECT_EQ(
      whole(answer).body,
      "data: " + identity +
          R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
          R"("finish_reason":null}]})"
          "\n\ndata: " +
          identity + R"("choices":[{"index":0,"delta":{"content":")" + word +
          R"("},"logprobs":null,"finish_reason":null}]})"
          "\n\ndata: " +
          identity +
          R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]})"
          "\n\ndata: [DONE]\n\n");
}

TEST(Answer, ACompletionStreamCarriesText) {
  const Answer answer(request_for(Endpoint::kCompletion), ask_for(Endpoint::kCompletion, 1),
                      kCreated);
  const std::string body = whole(answer).body;
  EXPECT_THAT(body, StartsWith(R"(data: {"id":"cmpl-req_1","object":"text_completion")"));
  EXPECT_THAT(body, HasSubstr(R"("text":")" + std::string(word_at(1, 0).text) + R"(","logprobs")"));
  EXPECT_THAT(body, HasSubstr(R"("text":"","logprobs":null,"finish_reason":"length")"));
}

TEST(Answer, UsageIsNullOnEveryEventButItsOwn) {
  Ask ask = ask_for(Endpoint::kChat, 2);
  ask.include_usage = true;
  const News news = whole(Answer(request_for(Endpoint::kChat), ask, kCreated));
  size_t nulls = 0;
  for (size_t at = 0; (at = news.body.find(R"("usage":null)", at)) != std::string::npos; ++at) {
    ++nulls;
  }
  EXPECT_EQ(nulls, 4u);
  EXPECT_THAT(news.body,
              HasSubstr(R"("choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,)"
                        R"("total_tokens":6}})"));
  EXPECT_EQ(events_in(news), 6u);
}

TEST(Answer, PiecesCoverTheBody) {
  const News news =
      whole(Answer(request_for(Endpoint::kChat), ask_for(Endpoint::kChat, 20), kCreated));
  size_t bytes = 0;
  for (const Piece& piece : news.pieces) bytes += piece.bytes;
  EXPECT_EQ(bytes, news.body.size());
  EXPECT_EQ(events_in(news), 23u);
}

TEST(Answer, AUnaryAnswerSaysWhatTheStreamSays) {
  Ask ask = ask_for(Endpoint::kChat, 9);
  ask.stream = false;
  const Answer answer(request_for(Endpoint::kChat), ask, kCreated);
  News news;
  answer.add_begin(&news);
  answer.add_end(&news);
  EXPECT_EQ(news.head.content_type(), "application/json");
  EXPECT_THAT(news.body, HasSubstr(R"("content":")" + text_of(1, 9) + R"(","refusal":null})"));
  EXPECT_THAT(news.body, EndsWith(R"("completion_tokens":9,"total_tokens":13}})"));
  EXPECT_EQ(news.pieces.size(), 1u);
}

TEST(Answer, ALimitEndsWithLengthAndTheDefaultWithStop) {
  Ask ask = ask_for(Endpoint::kChat, 0);
  ask.behaviour.answer_tokens = 5;
  const Answer natural(request_for(Endpoint::kChat), ask, kCreated);
  EXPECT_EQ(natural.tokens(), 5u);
  EXPECT_EQ(natural.finish_reason(), "stop");
  const Answer limited(request_for(Endpoint::kChat), ask_for(Endpoint::kChat, 3), kCreated);
  EXPECT_EQ(limited.tokens(), 3u);
  EXPECT_EQ(limited.finish_reason(), "length");
}

TEST(Answer, AStopWordEndsTheAnswer) {
  Ask ask = ask_for(Endpoint::kChat, 50);
  ask.stops = {std::string(word_at(1, 3).text)};
  const Answer answer(request_for(Endpoint::kChat), ask, kCreated);
  EXPECT_LE(answer.tokens(), 3u);
  EXPECT_EQ(answer.finish_reason(), "stop");
}

TEST(Answer, GroupsNameEveryTokenAndTheReasonOnTheLast) {
  v1::CallRequest request = request_for(Endpoint::kChat);
  request.set_token_groups(true);
  const News news = whole(Answer(request, ask_for(Endpoint::kChat, 3), kCreated));
  ASSERT_EQ(news.groups.size(), 3u);
  EXPECT_EQ(news.groups[1].token_ids(0), word_at(1, 1).token_id);
  EXPECT_EQ(news.groups[1].finish_reason(), "");
  EXPECT_EQ(news.groups[2].finish_reason(), "length");
}

TEST(Answer, NamesFromOutsideAreEscaped) {
  EXPECT_EQ(json_escaped("a\"b\\c\n\x01"), "a\\\"b\\\\c\\u000a\\u0001");
  EXPECT_EQ(json_escaped("größer"), "größer");
}

}  // namespace
}  // namespace penstock::replica::simulated
