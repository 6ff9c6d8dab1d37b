#include "response_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::evals {
namespace {

using State = ResponseReader::State;

const std::string kChunkedAnswer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;name=value\r\n world\r\n0\r\n\r\n";

struct Read {
  State state;
  std::string body;
  size_t used;
};

Read read_in_pieces(ResponseReader& reader, const std::string& bytes, size_t piece) {
  Read read{State::kHead, "", 0};
  for (size_t at = 0; at < bytes.size(); at += piece) {
    read.used += reader.feed(std::string_view(bytes).substr(at, piece),
                             [&](std::string_view body) { read.body += body; });
  }
  read.state = reader.state();
  return read;
}

TEST(ResponseReader, ReadsAChunkedAnswerCutAnywhere) {
  for (size_t piece = 1; piece <= kChunkedAnswer.size(); ++piece) {
    ResponseReader reader;
    const Read read = read_in_pieces(reader, kChunkedAnswer, piece);
    EXPECT_EQ(read.state, State::kDone) << piece;
    EXPECT_EQ(read.body, "hello world") << piece;
    EXPECT_EQ(read.used, kChunkedAnswer.size()) << piece;
    EXPECT_TRUE(reader.head().event_stream);
    EXPECT_EQ(reader.head().status, 200);
  }
}

TEST(ResponseReader, ReadsAnAnswerOfKnownLength) {
  ResponseReader reader;
  const Read read = read_in_pieces(
      reader, "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nConnection: close\r\n\r\nnope", 7);
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.body, "nope");
  EXPECT_EQ(reader.head().status, 404);
  EXPECT_FALSE(reader.head().keep_alive);
  EXPECT_FALSE(reader.head().event_stream);
}

TEST(ResponseReader, AnEmptyBodyIsCompleteWithItsHead) {
  ResponseReader reader;
  EXPECT_EQ(read_in_pieces(reader, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 99).state,
            State::kDone);
}

TEST(ResponseReader, LeavesTheBytesAfterTheAnswer) {
  ResponseReader reader;
  const Read read = read_in_pieces(reader, kChunkedAnswer + "HTTP/1.1", 4096);
  EXPECT_EQ(read.used, kChunkedAnswer.size());
}

TEST(ResponseReader, IsReadyForTheNextAnswerAfterReset) {
  ResponseReader reader;
  read_in_pieces(reader, kChunkedAnswer, 4096);
  reader.reset();
  EXPECT_EQ(read_in_pieces(reader, kChunkedAnswer, 4096).body, "hello world");
}

TEST(ResponseReader, AChunkedAnswerCutShortIsBroken) {
  ResponseReader reader;
  read_in_pieces(reader, kChunkedAnswer.substr(0, kChunkedAnswer.size() - 5), 4096);
  EXPECT_EQ(reader.state(), State::kBody);
  reader.end_of_input();
  EXPECT_EQ(reader.state(), State::kBroken);
}

TEST(ResponseReader, AnAnswerWithoutALengthEndsWithItsConnection) {
  ResponseReader reader;
  read_in_pieces(reader, "HTTP/1.1 200 OK\r\n\r\nall of it", 4096);
  reader.end_of_input();
  EXPECT_EQ(reader.state(), State::kDone);
}

TEST(ResponseReader, RefusesWhatIsNoHttp) {
  const std::vector<std::string> answers = {
      "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot hex\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"};
  for (const std::string& answer : answers) {
    ResponseReader reader;
    EXPECT_EQ(read_in_pieces(reader, answer, 4096).state, State::kBroken) << answer;
  }
}

}  // namespace
}  // namespace penstock::evals
