#include "sse_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::evals {
namespace {

using Events = std::vector<std::string>;

Events decode(const std::string& bytes, size_t piece) {
  SseDecoder decoder;
  Events events;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    decoder.feed(std::string_view(bytes).substr(at, piece),
                 [&](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

TEST(SseDecoder, FindsEventsCutAnywhere) {
  const std::string stream =
      ": ping\n\ndata: {\"a\":1}\n\nevent: error\ndata:two\ndata: lines\n\ndata: [DONE]\n\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_EQ(decode(stream, piece), (Events{"{\"a\":1}", "two\nlines", "[DONE]"})) << piece;
  }
}

TEST(SseDecoder, TakesCarriageReturns) {
  EXPECT_EQ(decode("data: one\r\n\r\ndata: two\r\n\r\n", 3), (Events{"one", "two"}));
}

TEST(SseDecoder, AnEventWithoutItsEmptyLineIsNone) {
  EXPECT_EQ(decode("data: one\n\ndata: two\n", 99), Events{"one"});
}

TEST(SseDecoder, ForgetsAHalfEventOnReset) {
  SseDecoder decoder;
  Events events;
  const auto keep = [&](std::string_view data) { events.emplace_back(data); };
  decoder.feed("data: old\ndata: ol", keep);
  decoder.reset();
  decoder.feed("data: new\n\n", keep);
  EXPECT_EQ(events, Events{"new"});
}

TEST(Classify, TellsTheEndAndErrorsFromData) {
  EXPECT_EQ(classify("[DONE]"), EventKind::kDone);
  EXPECT_EQ(classify("{\"error\":{\"message\":\"gone\"}}"), EventKind::kError);
  EXPECT_EQ(classify("{\"id\":\"x\",\"choices\":[]}"), EventKind::kData);
  EXPECT_EQ(classify("[DONE] "), EventKind::kData);
}

}  // namespace
}  // namespace penstock::evals
