#include "openai/chunk_names.h"

#include <gtest/gtest.h>

namespace penstock::openai {
namespace {

constexpr const char* kChunk =
    R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mini",)"
    R"("choices":[{"index":0,"delta":{"role":"assistant","content":"\"id\":\"no\""}}]})";

TEST(ChunkNames, AreThoseOfTheFirstChunk) {
  const auto names = chunk_names(": early\n\ndata: " + std::string(kChunk) +
                                 "\n\ndata: {\"id\":\"chatcmpl-2\"}\n\n");
  EXPECT_EQ(names.id, "chatcmpl-1");
  EXPECT_EQ(names.object, "chat.completion.chunk");
  EXPECT_EQ(names.created, "1700000000");
  EXPECT_EQ(names.model, "mini");
}

TEST(ChunkNames, AreReadInAnyOrderWithBlanksAndEscapes) {
  const auto names = chunk_names(
      R"(data: { "choices": [{"model":"no"}], "model": "a\"b", "created": 7 , "id": "x" })"
      "\n\n");
  EXPECT_EQ(names.model, "a\"b");
  EXPECT_EQ(names.created, "7");
  EXPECT_EQ(names.id, "x");
  EXPECT_EQ(names.object, "");
}

TEST(ChunkNames, OfALargeFirstChunkToo) {
  const auto names = chunk_names("data: {\"prompt_logprobs\":[\"" + std::string(100'000, 'x') +
                                 "\"],\"id\":\"chatcmpl-1\"}\n\n");
  EXPECT_EQ(names.id, "chatcmpl-1");
}

TEST(ChunkNames, StayEmptyWhereThereAreNone) {
  for (const char* events : {"", "data: [DONE]\n\n", "data: {\"id\":null,\"created\":{}}\n\n",
                             "data: {\"id\":", "data: \n\n", "event: ping\n\n"}) {
    const auto names = chunk_names(events);
    EXPECT_EQ(names.id + names.object + names.created + names.model, "") << events;
  }
}

}  // namespace
}  // namespace penstock::openai
