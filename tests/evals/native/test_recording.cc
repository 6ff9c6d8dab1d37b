#include "recording.h"

#include <gtest/gtest.h>

#include "response_reader.h"

namespace penstock::evals {
namespace {

const std::string kStream =
    "data: {\"first\":1}\n\ndata: a\n\ndata: b\n\ndata: {\"last\":1}\n\ndata: [DONE]\n\n";

std::string body_of(const std::string& answer) {
  ResponseReader reader;
  std::string body;
  reader.feed(answer, [&](std::string_view piece) { body += piece; });
  EXPECT_EQ(reader.state(), ResponseReader::State::kDone);
  return body;
}

TEST(Recording, TheWholeAnswerIsTheRecordedOneByteForByte) {
  EXPECT_EQ(body_of(Recording::of_stream(kStream).whole()), kStream);
  EXPECT_EQ(body_of(Recording::of_unary("{\"a\":1}").whole()), "{\"a\":1}");
}

TEST(Recording, TheEndlessAnswerRepeatsTheEventsBetweenFirstAndLast) {
  const Recording recording = Recording::of_stream(kStream);
  std::string answer(Recording::stream_head());
  for (size_t step = 0; step < 5; ++step) answer += recording.endless(step);
  EXPECT_EQ(body_of(answer + "0\r\n\r\n"),
            "data: {\"first\":1}\n\ndata: a\n\ndata: b\n\ndata: a\n\ndata: b\n\n");
}

TEST(Recording, RefusesAStreamThatWasCutShort) {
  EXPECT_THROW(Recording::of_stream("data: a\n\n"), BadRecording);
  EXPECT_THROW(Recording::of_stream("data: a\ndata: [DONE]\n\n"), BadRecording);
  EXPECT_THROW(Recording::of_stream("data: a\n\ndata: z\n\ndata: [DONE]\n\n").endless(1),
               BadRecording);
}

}  // namespace
}  // namespace penstock::evals
