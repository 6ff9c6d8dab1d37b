// Answers that end within a batch of their thread's: they leave when it closes, whatever their
// connection does next.
#include <gtest/gtest.h>

#include "http/session_fixture.h"

namespace penstock::http {
namespace {

class BatchedAnswersTest : public SessionTest {
 protected:
  static std::string request(const std::string& headers = "") { return post(kUnary, headers); }

  void answer(size_t i, const std::string& body) {
    call(i).content_type = "application/json";
    call(i).chunk(body);
    call(i).finish();
  }
  size_t answers() {
    size_t count = 0;
    for (size_t at = 0; (at = got().find("HTTP/1.1 200 OK", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  }

  static std::string unchunked(std::string_view body) {
    std::string text;
    for (size_t size = 1; size > 0;) {
      size = std::stoul(std::string(body.substr(0, body.find("\r\n"))), nullptr, 16);
      body.remove_prefix(body.find("\r\n") + 2);
      text += body.substr(0, size);
      body.remove_prefix(size + 2);
    }
    return text;
  }

  // Until the client, which reads nothing, has not taken the last one whole; it has asked for the
  // next. Returns how many.
  size_t answer_until_stuck() {
    constexpr size_t kMost = 10'000;
    connect_with_buffer(4096);
    client_.set_option(Tcp::no_delay(true));
    for (size_t answered = 0; answered < kMost; ++answered) {
      send(request());
      for (int turn = 0; turn < 10 && upstream_.calls.size() == answered; ++turn) loop_.poll();
      if (upstream_.calls.size() == answered) return answered;
      const runtime::SendBatch::Open batch(sends_);
      answer(answered, kLong);
    }
    ADD_FAILURE() << "its system takes everything";
    return kMost;
  }

  static inline const std::string kLong = "{\"text\":\"" + std::string(3000, 'x') + "\"}";
  static inline const std::string kUnary = R"({"model":"mini","messages":[{}]})";
};

TEST_F(BatchedAnswersTest, LeaveTogetherAndTheirConnectionsGoOn) {
  Tcp::socket other(loop_.io());
  connect(other);
  send(request());
  ASSERT_TRUE(opens(1));
  std::swap(client_, other);
  send(request());
  ASSERT_TRUE(opens(2));
  {
    const runtime::SendBatch::Open batch(sends_);
    answer(0, R"({"first":1})");
    answer(1, R"({"second":2})");
    loop_.poll();
    EXPECT_EQ(got(), "");
  }
  EXPECT_TRUE(gets(R"({"second":2})"));
  send(request());
  ASSERT_TRUE(opens(3));
  std::swap(client_, other);
  EXPECT_TRUE(gets(R"({"first":1})"));
}

TEST_F(BatchedAnswersTest, ReachAClientThatHasEndedItsSide) {
  send(request());
  ASSERT_TRUE(opens(1));
  client_.shutdown(Tcp::socket::shutdown_send);
  ASSERT_TRUE(gets("100 Continue")) << "it was seen";
  {
    const runtime::SendBatch::Open batch(sends_);
    answer(0, R"({"whole":true})");
    loop_.poll();
  }
  EXPECT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with(R"({"whole":true})")) << got_;
}

TEST_F(BatchedAnswersTest, ReachAClientWhoseSideEndsInTheSameMoment) {
  send(request());
  ASSERT_TRUE(opens(1));
  {
    const runtime::SendBatch::Open batch(sends_);
    answer(0, R"({"whole":true})");
    client_.shutdown(Tcp::socket::shutdown_send);
    loop_.poll();
  }
  EXPECT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with(R"({"whole":true})")) << got_;
}

TEST_F(BatchedAnswersTest, DoNotWaitWhereTheConnectionEndsWithThem) {
  send(request("Connection: close\r\n"));
  ASSERT_TRUE(opens(1));
  const runtime::SendBatch::Open batch(sends_);
  answer(0, R"({"last":true})");
  EXPECT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with(R"({"last":true})")) << got_;
}

TEST_F(BatchedAnswersTest, LeaveBeforeASessionThatIsDrained) {
  send(request());
  ASSERT_TRUE(opens(1));
  {
    const runtime::SendBatch::Open batch(sends_);
    answer(0, R"({"last":true})");
    group_.end_soon();
    loop_.poll();
  }
  EXPECT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with(R"({"last":true})")) << got_;
}

TEST_F(BatchedAnswersTest, OfStreamsKeepTheirOrder) {
  send(post(kBody) + post(kBody));
  ASSERT_TRUE(opens(1));
  {
    const runtime::SendBatch::Open batch(sends_);
    call().chunk("data: one\n\n");
    call().chunk("data: [DONE]\n\n");
    call().finish();
    ASSERT_TRUE(opens(2));
    call(1).chunk("data: two\n\n");
    call(1).chunk("data: [DONE]\n\n");
    call(1).finish();
  }
  ASSERT_TRUE(gets("data: two\n\n"));
  ASSERT_TRUE(loop_.run_until([&] { return got().ends_with("0\r\n\r\n"); }));
  EXPECT_EQ(answers(), 2U);
  EXPECT_LT(got_.find("data: one"), got_.find("data: [DONE]"));
  EXPECT_LT(got_.find("data: [DONE]"), got_.find("data: two"));
}

TEST_F(BatchedAnswersTest, OfStreamsUnderWayGoAlongEachInAChunk) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: one\n\n");
  ASSERT_TRUE(gets("data: one\n\n"));
  {
    const runtime::SendBatch::Open batch(sends_);
    call().chunk("data: two\n\n");
    loop_.poll();
    EXPECT_TRUE(got().ends_with("data: one\n\n\r\n")) << got_;
  }
  ASSERT_TRUE(gets("data: two\n\n"));
  EXPECT_TRUE(got_.ends_with("b\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\n")) << got_;
}

TEST_F(BatchedAnswersTest, OfStreamsComeInOrderHoweverLongTheirChunksAre) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  std::string expected;
  const auto chunk = [&](size_t bytes) {
    const std::string event = "data: " + std::to_string(expected.size()) + std::string(bytes, 'x');
    call().chunk(event + "\n\n");
    expected += event + "\n\n";
  };
  for (size_t round = 0; round < 20; ++round) {
    const runtime::SendBatch::Open batch(sends_);
    // The first with the head; short ones go along, those over 4 KiB do not.
    for (const size_t bytes : {10UL, 5000UL, 20UL * round, 4090UL + round, 70'000UL}) {
      chunk(bytes);
      if (round % 2 == 0) loop_.poll();
    }
  }
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(loop_.run_until([&] { return got().ends_with("0\r\n\r\n"); }));
  EXPECT_EQ(unchunked(got_.substr(got_.find("\r\n\r\n") + 4)), expected + "data: [DONE]\n\n");
}

TEST_F(BatchedAnswersTest, OfStreamsThatHaveNoChunksHaveNoFrames) {
  send("POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
       std::to_string(kBody.size()) + "\r\n\r\n" + kBody);
  ASSERT_TRUE(opens(1));
  call().chunk("data: one\n\n");
  {
    const runtime::SendBatch::Open batch(sends_);
    call().chunk("data: two\n\n");
  }
  ASSERT_TRUE(gets("data: two\n\n"));
  EXPECT_TRUE(got_.ends_with("\r\n\r\ndata: one\n\ndata: two\n\n")) << got_;
}

TEST_F(BatchedAnswersTest, OfStreamsAreWholeWhereTheirClientReadsNothingForAWhile) {
  constexpr int kMost = 100'000;
  const std::string event = "data: " + std::string(1000, 'x') + "\n\n";
  connect_with_buffer(4096);
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk(event);
  int events = 1;
  for (; events < kMost && call().granted + 4 * event.size() > events * event.size(); ++events) {
    const runtime::SendBatch::Open batch(sends_);
    call().chunk(event);
  }
  ASSERT_LT(events, kMost) << "no more than what the sockets hold";
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(loop_.run_until([&] { return got().ends_with("0\r\n\r\n"); }));
  int seen = 0;
  for (size_t at = 0; (at = got_.find(event, at)) != std::string::npos; ++at) ++seen;
  EXPECT_EQ(seen, events);
}

TEST_F(BatchedAnswersTest, WaitForAClientThatReadsNothing) {
  constexpr size_t kRequests = 3000;
  const std::string body = "{\"text\":\"" + std::string(3000, 'x') + "\"}";
  connect_with_buffer(4096);
  std::string requests;
  for (size_t i = 0; i < kRequests; ++i) requests += request();
  send(requests);
  size_t answered = 0;
  const auto answer_what_opens = [&] {
    for (loop_.poll(); answered < upstream_.calls.size(); loop_.poll()) {
      const runtime::SendBatch::Open batch(sends_);
      answer(answered++, body);
    }
  };
  ASSERT_TRUE(opens(1));
  answer_what_opens();
  EXPECT_LT(answered, kRequests) << "no more than what the sockets hold";
  EXPECT_TRUE(loop_.run_until([&] {
    answer_what_opens();
    got();
    return answered == kRequests;
  }));
  EXPECT_TRUE(loop_.run_until([&] { return got().ends_with(body); }));
  EXPECT_EQ(answers(), kRequests);
}

TEST_F(BatchedAnswersTest, AreSentOnAsTheirClientReads) {
  const size_t answered = answer_until_stuck();
  EXPECT_TRUE(loop_.run_until([&] { return answers() == answered && got_.ends_with(kLong); }));
  EXPECT_TRUE(opens(answered + 1));
}

TEST_F(BatchedAnswersTest, AreNoIdleConnectionsWhileTheyAreStuck) {
  const size_t answered = answer_until_stuck();
  EXPECT_FALSE(waiting_.make_room(Waiting::kAny));
  pass(config_.idle_timeout);
  EXPECT_TRUE(loop_.run_until([&] { return answers() == answered && got_.ends_with(kLong); }));
  EXPECT_TRUE(opens(answered + 1));
}

TEST_F(BatchedAnswersTest, AreCountedWhereTheGatewayEndsBeforeTheyAreGone) {
  answer_until_stuck();
  group_.end_soon();
  EXPECT_EQ(state_.requests_cut.load(), 1U);
}

}  // namespace
}  // namespace penstock::http
