// Large unary answers on their way to clients that read fast, slowly or not at all.
#include <cerrno>
#include <vector>

#include "session_fixture.h"

namespace penstock::http {
namespace {

const std::string kUnary = R"({"model":"mini","messages":[{}]})";

class LargeAnswerTest : public SessionTest {
 protected:
  // What the replica says: pieces that tell where each byte belongs.
  static std::string text(size_t bytes) {
    std::string made;
    for (size_t i = 0; made.size() < bytes; ++i) made += std::to_string(i) + ",";
    return made;
  }
  void answer(const std::string& body) {
    call().content_type = "application/json";
    for (size_t at = 0; at < body.size(); at += 256UL << 10U) {
      call().chunk(body.substr(at, 256UL << 10U));
    }
    call().finish();
  }
  bool all_budget_is_back() {
    if (!answers_.take(64UL << 20U)) return false;
    answers_.give_back(64UL << 20U);
    return true;
  }
};

TEST_F(LargeAnswerTest, ComesWholeAndTheConnectionIsKept) {
  const std::string body = text(8UL << 20U);
  send(post(kUnary));
  ASSERT_TRUE(opens(1));
  answer(body);
  ASSERT_TRUE(gets(body));
  EXPECT_NE(got_.find("content-length: " + std::to_string(body.size()) + "\r\n"),
            std::string::npos);
  EXPECT_TRUE(all_budget_is_back());
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(loop_.run_until([&] { return got().rfind("HTTP/1.1 200 ") > body.size(); }));
}

TEST_F(LargeAnswerTest, ComesWholeToAClientThatHasEndedItsSide) {
  const std::string body = text(8UL << 20U);
  send(post(kUnary));
  ASSERT_TRUE(opens(1));
  answer(body.substr(0, 4UL << 20U));
  client_.shutdown(Tcp::socket::shutdown_send);
  ASSERT_TRUE(gets(body.substr(0, 4UL << 20U))) << "nothing is put between its parts";
}

TEST_F(LargeAnswerTest, IsNotCutOffForAReaderThatGetsOn) {
  connect_with_buffer(256 << 10);       // else the client's system may take all of it at once
  constexpr size_t kStep = 4UL << 20U;  // more than the gateway's system holds of it
  const std::string body = text(8 * kStep);
  send(post(kUnary));
  ASSERT_TRUE(opens(1));
  answer(body);
  EXPECT_FALSE(all_budget_is_back());
  std::vector<char> part(256UL << 10U);
  size_t read = 0;
  const auto take = [&](size_t upto) {
    const ssize_t n = ::recv(client_.native_handle(), part.data(), part.size(), 0);
    if (n > 0) read += static_cast<size_t>(n);
    return read > upto;
  };
  // Far slower, for all of it together, than the time that a reader may stand still. Not to the
  // end: once the last of it is with the system, the connection is one that waits for a request.
  for (size_t upto = kStep; upto + 2 * kStep <= body.size(); upto += kStep) {
    ASSERT_TRUE(loop_.run_until([&] { return take(upto); }));
    pass(config_.write_timeout / 2);
    ASSERT_EQ(group_.size(), 1U) << "it was given up after " << read << " bytes";
  }
  ASSERT_TRUE(loop_.run_until([&] { return take(body.size()); }));
}

TEST_F(LargeAnswerTest, IsGivenUpForAReaderThatStandsStill) {
  connect_with_buffer(4096);
  send(post(kUnary));
  ASSERT_TRUE(opens(1));
  answer(text(8UL << 20U));
  EXPECT_FALSE(all_budget_is_back());
  EXPECT_TRUE(loop_.run_until([&] {
    pass(config_.write_timeout + std::chrono::seconds(1));
    return group_.size() == 0;
  }));
  EXPECT_TRUE(all_budget_is_back());
}

// An end that looks whole would leave the rest of them in this machine's memory, for nobody.
TEST_F(LargeAnswerTest, ShortOnesThatAreNeverReadEndByAReset) {
  connect_with_buffer(4096);
  const std::string body = text(60UL << 10U);
  for (size_t i = 0; i < 200 && state_.in_flight == 0; ++i) {
    send(post(kUnary));
    ASSERT_TRUE(opens(i + 1));
    call(i).content_type = "application/json";
    call(i).chunk(body);
    call(i).finish();
    loop_.poll();
  }
  ASSERT_EQ(state_.in_flight, 1U);
  ASSERT_TRUE(loop_.run_until([&] {
    pass(config_.write_timeout + std::chrono::seconds(1));
    return group_.size() == 0;
  }));
  std::vector<char> part(1UL << 20U);
  ssize_t n = 0;
  do {
    n = ::recv(client_.native_handle(), part.data(), part.size(), 0);
  } while (n > 0);
  EXPECT_EQ(n, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(LargeAnswerTest, OfThePortItselfIsSentWhole) {
  send("GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(gets("\r\n\r\n"));
  const std::string end = "\n}\n";
  EXPECT_TRUE(loop_.run_until([&] { return got().ends_with(end); }));
}

}  // namespace
}  // namespace penstock::http
