#include "http/chunk_decoder.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

using State = ChunkDecoder::State;

struct Decoded {
  State state;
  std::string body;
  size_t used;
  std::string fault;
};

// Fed in parts of `step` bytes.
Decoded decode(std::string_view bytes, size_t step, size_t limit = 1000) {
  ChunkDecoder decoder(limit);
  std::string body;
  size_t used = 0;
  while (used < bytes.size() && decoder.state() == State::kMore) {
    used += decoder.feed(bytes.substr(used, step), body);
  }
  return {decoder.state(), body, used, std::string(decoder.fault())};
}

Decoded decode(std::string_view bytes) { return decode(bytes, bytes.size()); }

TEST(ChunkDecoder, ReadsABodyHoweverItIsCut) {
  const std::string bytes = "5\r\nhello\r\n0006;a=\"b\"\r\n world\r\n0\r\nX-T: 1\r\n\r\nGET /";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    const Decoded got = decode(bytes, step);
    EXPECT_EQ(got.state, State::kDone) << step << ' ' << got.fault;
    EXPECT_EQ(got.body, "hello world") << step;
    EXPECT_EQ(bytes.substr(got.used), "GET /") << step;
  }
}

TEST(ChunkDecoder, WantsMoreUntilTheLastLine) {
  const std::string bytes = "2\r\nhi\r\n0\r\n\r\n";
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(bytes.substr(0, size)).state, State::kMore) << size;
  }
}

TEST(ChunkDecoder, RefusesWhatTwoReadersCouldReadInTwoWays) {
  for (const std::string bytes : {"\r\n",
                                  "zz\r\n",
                                  "+5\r\n",
                                  " 5\r\n",
                                  "0x5\r\n",
                                  "5 \r\n",
                                  "5\t;a\r\n",
                                  "5\nhello",
                                  "5\r5",
                                  "5;a\nb\r\n",
                                  "5;a=\"\n\"\r\n",
                                  "5;a\rb\r\n",
                                  "2\r\nhi0\r\n",
                                  "2\r\nhi\n",
                                  "2\r\nhi\r0",
                                  "0\r\n\n",
                                  "0\r\n x: 1\r\n",
                                  "0\r\nx : 1\r\n",
                                  "0\r\nx\r\n",
                                  "0\r\n: 1\r\n",
                                  "0\r\nx: a\nb\r\n",
                                  "0\r\nx: a\rb\r\n",
                                  "0\r\n\rx",
                                  "00000000000000005\r\n"}) {
    const Decoded got = decode(bytes);
    EXPECT_EQ(got.state, State::kFault) << bytes;
    EXPECT_FALSE(got.fault.empty()) << bytes;
  }
}

TEST(ChunkDecoder, HoldsTheBodyToItsLimitBeforeItComes) {
  EXPECT_EQ(decode("3e9\r\n").state, State::kTooLarge);
  EXPECT_EQ(decode("3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n").state, State::kDone);
  EXPECT_EQ(decode("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n").state, State::kTooLarge);
  EXPECT_EQ(decode("ffffffffffffffff\r\n").state, State::kTooLarge);
}

TEST(ChunkDecoder, HoldsFramingToItsBounds) {
  const auto chunk = [](size_t extension) {
    return "1;" + std::string(extension, 'e') + "\r\nx\r\n";
  };
  EXPECT_EQ(decode(chunk(ChunkDecoder::kExtensionBytes)).state, State::kMore);
  EXPECT_EQ(decode(chunk(ChunkDecoder::kExtensionBytes + 1)).state, State::kFault);
  std::string many;
  for (int i = 0; i < 17; ++i) many += chunk(ChunkDecoder::kExtensionBytes);
  EXPECT_EQ(decode(many).state, State::kFault);
  EXPECT_EQ(decode(std::string(1000, '0')).state, State::kFault);
  EXPECT_EQ(decode("0\r\nx: " + std::string(9000, 'y')).state, State::kFault);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 3000; ++i) trailers += "x: y\r\n";
  EXPECT_EQ(decode(trailers).state, State::kFault);
}

}  // namespace
}  // namespace penstock::http
