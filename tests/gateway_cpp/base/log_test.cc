#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "log_capture.h"

namespace penstock::base {
namespace {

TEST(Log, WritesOneJsonObjectPerLine) {
  test::LogCapture capture;
  const std::string id = "req_1";
  capture.log().info(
      "request settled",
      {{"request_id", id}, {"status", 200U}, {"seconds", 0.5}, {"streamed", true}, {"delta", -3}});
  EXPECT_EQ(capture.text(),
            R"({"time":"2026-01-01T00:00:00.123Z","level":"info","message":"request settled",)"
            R"("request_id":"req_1","status":200,"seconds":0.5,"streamed":true,"delta":-3})"
            "\n");
}

TEST(Log, ALineBreakInAValueStaysInsideItsLine) {
  test::LogCapture capture;
  capture.log().warning("odd", {{"value", "a\nb\"c\xFF"}});
  const std::string text = capture.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find(R"(a\nb\"c)"), std::string::npos);
}

TEST(Log, LeavesOutWhatIsBelowItsLevel) {
  test::LogCapture capture(Level::kWarning);
  capture.log().debug("no");
  capture.log().info("no");
  capture.log().error("yes");
  const std::string text = capture.text();
  EXPECT_EQ(text.find("\"no\""), std::string::npos);
  EXPECT_NE(text.find("\"yes\""), std::string::npos);
}

TEST(Log, ANumberThatJsonCannotSayIsNull) {
  test::LogCapture capture;
  capture.log().info("odd", {{"value", std::nan("")}});
  EXPECT_NE(capture.text().find(R"("value":null)"), std::string::npos);
}

TEST(Log, LinesOfManyThreadsNeverMix) {
  test::LogCapture capture;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&capture] {
      for (int i = 0; i < 50; ++i) capture.log().info("same", {{"value", "xxxxxxxx"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = capture.text();
  const std::string line = text.substr(0, text.find('\n') + 1);
  ASSERT_EQ(text.size(), line.size() * 200);
  for (std::size_t i = 0; i < text.size(); i += line.size()) {
    ASSERT_EQ(text.compare(i, line.size(), line), 0);
  }
}

TEST(Level, KnowsFourNames) {
  EXPECT_EQ(parse_level("error"), Level::kError);
  EXPECT_FALSE(parse_level("loud").has_value());
}

}  // namespace
}  // namespace penstock::base
