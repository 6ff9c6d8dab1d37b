#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <string>
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

std::string everything(int fd) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t n = 0; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

TEST(Log, ASlowReaderHoldsNobodyUpAndLinesThatAreLostAreCounted) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const test::FixedClock clock;
  const std::string big(200'000, 'x');  // more than a pipe holds
  std::future<std::string> rest;
  {
    Log log(clock, Level::kInfo, pipe[1]);
    log.info("stuck", {{"value", big}});
    char first = 0;
    ASSERT_EQ(::read(pipe[0], &first, 1), 1);  // the thread is at it
    for (int i = 0; i < 10; ++i) log.info("more", {{"value", big}});
    rest = std::async(std::launch::async, everything, pipe[0]);
  }
  ::close(pipe[1]);
  const std::string text = rest.get();
  ::close(pipe[0]);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5 + 1);
  EXPECT_NE(text.find(R"(a full disk","lines":5)"), std::string::npos);
}

TEST(Log, AfterAWriteThatFailedLinesAreWholeAgainAndTheLostOnesAreCounted) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_NONBLOCK), 0);  // full, it fails as a full disk does
  const test::FixedClock clock;
  {
    Log log(clock, Level::kInfo, pipe[1]);
    log.info("torn", {{"value", std::string(200'000, 'x')}});
    log.flush();
    log.info("nowhere to go");
    log.flush();
    log.info("nowhere either");
    log.flush();
    EXPECT_EQ(everything(pipe[0]).find('\n'), std::string::npos);
    log.info("written");
  }
  ::close(pipe[1]);
  const std::string text = everything(pipe[0]);
  ::close(pipe[0]);
  EXPECT_EQ(text.front(), '\n');
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_NE(text.find(R"(a full disk","lines":3})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("message":"written"})"), std::string::npos) << text;
}

TEST(Log, WhatWasLoggedBeforeItsEndIsWritten) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const test::FixedClock clock;
  {
    Log log(clock, Level::kInfo, pipe[1]);
    for (int i = 0; i < 20; ++i) log.info("last words");
  }
  ::close(pipe[1]);
  const std::string text = everything(pipe[0]);
  ::close(pipe[0]);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20);
}

TEST(Level, KnowsFourNames) {
  EXPECT_EQ(parse_level("error"), Level::kError);
  EXPECT_FALSE(parse_level("loud").has_value());
}

}  // namespace
}  // namespace penstock::base
