#include "request_reader.h"

#include <gtest/gtest.h>

namespace penstock::evals {
namespace {

const std::string kRequest =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world";

TEST(RequestReader, CountsRequestsCutAnywhere) {
  const std::string bytes = kRequest + "GET / HTTP/1.1\r\n\r\n" + kRequest;
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    RequestReader reader;
    size_t complete = 0;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      complete += reader.feed(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(complete, 3u) << piece;
  }
}

TEST(RequestReader, WaitsForTheWholeBody) {
  RequestReader reader;
  EXPECT_EQ(reader.feed(kRequest.substr(0, kRequest.size() - 1)), 0u);
  EXPECT_EQ(reader.feed("d"), 1u);
}

}  // namespace
}  // namespace penstock::evals
