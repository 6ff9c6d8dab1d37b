#include "http/session.h"

#include <gtest/gtest.h>

#include "http/gzip_text.h"
#include "http/session_fixture.h"

namespace penstock::http {
namespace {

TEST_F(SessionTest, FramesTheEventsOfOneWriteAsOneChunk) {
  send(post(kBody, "X-Request-Id: mine\r\nOrigin: http://page\r\n"));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\ndata: b\n\n", 2);
  ASSERT_TRUE(gets("\r\n\r\n12\r\ndata: a\n\ndata: b\n\n\r\n"));
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"));
  EXPECT_NE(got_.find("\r\nx-request-id: req_"), std::string::npos);
  EXPECT_NE(got_.find("\r\nx-client-request-id: mine\r\n"), std::string::npos);
  EXPECT_NE(got_.find("\r\ntransfer-encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(got_.find("\r\naccess-control-allow-origin: http://page\r\n"), std::string::npos);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(gets("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"));
}

TEST_F(SessionTest, AnswersPipelinedRequestsInTheirOrder) {
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" + post(kBody) +
       "GET /v1/models/other HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(opens(1));
  call().chunk("data: [DONE]\n\n");
  EXPECT_EQ(got().find("HTTP/1.1 404"), std::string::npos) << "the stream before it has not ended";
  EXPECT_FALSE(call().cancelled) << "a pipelined request is no disconnect";
  call().finish();
  ASSERT_TRUE(gets("model_not_found"));
  EXPECT_LT(got_.find("\"live\""), got_.find("[DONE]"));
  EXPECT_LT(got_.find("[DONE]"), got_.find("model_not_found"));
}

TEST_F(SessionTest, CancelsTheCallOfAClientThatLeaves) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  client_.close();
  EXPECT_TRUE(loop_.run_until([&] { return call().cancelled; }));
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
}

TEST_F(SessionTest, HoldsTheReplicaBackWhileTheClientReadsNothing) {
  connect_with_buffer(256 << 10);
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  for (int i = 0; i < 16; ++i) {
    call().chunk(event);
    loop_.poll();
  }
  EXPECT_LT(call().granted, 8UL << 20U) << "no more than what the sockets hold";
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(gets("0\r\n\r\n"));
}

TEST_F(SessionTest, GivesUpOnAClientThatTakesNothingForTooLong) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  for (uint64_t sent = 0; call().granted == sent; sent += event.size()) call().chunk(event);
  // Its system may take a little more after the first time that it took nothing.
  EXPECT_TRUE(loop_.run_until([&] {
    pass(config_.write_timeout + std::chrono::seconds(1));
    return group_.size() == 0;
  }));
}

TEST_F(SessionTest, GivesUpOnAClientThatTakesNextToNothing) {
  connect_with_buffer(4096);
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  for (uint64_t sent = 0; call().granted == sent; sent += event.size()) call().chunk(event);
  // A few KiB every twenty seconds: never silent, and far below what it has to take.
  std::array<char, 3000> part{};
  for (int i = 0; i < 20 && !call().cancelled; ++i) {
    static_cast<void>(::recv(client_.native_handle(), part.data(), part.size(), 0));
    pass(std::chrono::seconds(20));
    loop_.poll();
  }
  EXPECT_TRUE(loop_.run_until([&] { return call().cancelled; }));
}

TEST_F(SessionTest, TellsTheClientOfAFaultOfItsOwnAndCloses) {
  broken_ = true;
  send("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 500 ")) << got_;
  EXPECT_NE(got_.find("\r\nconnection: close\r\n"), std::string::npos);
  EXPECT_EQ(got_.find("\"live\""), std::string::npos);
  EXPECT_EQ(shard_.broken_requests.value(), 1U);
}

TEST_F(SessionTest, EndsAStreamWithAnErrorAfterAFaultOfItsOwn) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().breaks = true;
  const std::string event = "data: " + std::string(proxy::FakeUpstream::kCredit, 'a') + "\n\n";
  call().chunk(event);
  ASSERT_TRUE(gets("\"code\":\"internal_error\""));
  pass(std::chrono::milliseconds(200));
  ASSERT_TRUE(sees_the_end());
  EXPECT_NE(got_.find(event), std::string::npos);
  EXPECT_TRUE(got_.ends_with("}\n\n\r\n")) << "no last chunk: the answer is not whole";
}

TEST_F(SessionTest, ClosesAStreamThatWasCutOff) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\n");
  call().lose(upstream::CallFailure::Source::kLost);
  ASSERT_TRUE(gets("data: {\"error\":{"));
  pass(std::chrono::milliseconds(50));
  got();
  EXPECT_FALSE(closed_) << "a page shall have the time to read why";
  pass(std::chrono::milliseconds(150));
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with("}\n\n\r\n")) << "no last chunk: the answer is not whole";
  EXPECT_EQ(got_.find("[DONE]"), std::string::npos);
}

TEST_F(SessionTest, EndsAStreamToAnOldClientWithTheConnection) {
  send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(kBody.size()) +
       "\r\n\r\n" + kBody);
  ASSERT_TRUE(opens(1));
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.ends_with("\r\n\r\ndata: [DONE]\n\n"));
  EXPECT_EQ(got_.find("chunked"), std::string::npos);
}

const std::string kGzip = "Content-Encoding: gzip\r\n";

TEST_F(SessionTest, UnpacksABodyThatComesInPieces) {
  const std::string data = post(gzip(kBody), kGzip);
  send(data.substr(0, data.size() - 20));
  loop_.poll();
  send(data.substr(data.size() - 20));
  ASSERT_TRUE(opens(1));
  EXPECT_EQ(call().request.body(), kBody);
}

TEST_F(SessionTest, RefusesABombAndGivesItsRoomBack) {
  send(post(gzip(std::string(32UL << 20U, '0')), kGzip));
  ASSERT_TRUE(gets("HTTP/1.1 413 "));
  EXPECT_NE(got_.find("unpacks to more than"), std::string::npos) << got_;
  EXPECT_TRUE(loop_.run_until([&] { return bodies_.take(64UL << 20U); }));
  bodies_.give_back(64UL << 20U);
}

TEST_F(SessionTest, UnpacksNoLongerThanABodyMayTake) {
  send(post(gzip(std::string(12UL << 20U, '0')), kGzip));
  ASSERT_TRUE(loop_.run_until([this] {
    const bool begun = !bodies_.take(63UL << 20U);
    if (!begun) bodies_.give_back(63UL << 20U);
    return begun;
  }));
  pass(config_.body_timeout + std::chrono::seconds(1));
  ASSERT_TRUE(gets("HTTP/1.1 408 "));
  EXPECT_TRUE(loop_.run_until([&] { return bodies_.take(64UL << 20U); }));
  bodies_.give_back(64UL << 20U);
}

TEST_F(SessionTest, StopsUnpackingForAClientThatLeaves) {
  const std::string data = post(gzip(std::string(8UL << 20U, '0')), kGzip);
  send(data.substr(0, data.size() - 500));
  loop_.poll();
  client_.close();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
  EXPECT_TRUE(bodies_.take(64UL << 20U)) << "its room is free";
  bodies_.give_back(64UL << 20U);
}

TEST_F(SessionTest, SaysThatItEndsAndNothingOfAPackedBodyThatIsHalfThere) {
  const std::string data = post(gzip(kBody), kGzip);
  send(data.substr(0, data.size() - 5));
  loop_.poll();
  group_.end_soon();
  ASSERT_TRUE(gets("\"code\":\"draining\""));
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 503 ")) << got_;
}

TEST_F(SessionTest, ReadsABodyThatComesInPiecesAndInChunks) {
  send("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  loop_.poll();
  send("5\r\n" + kBody.substr(0, 5) + "\r");
  loop_.poll();
  std::array<char, 8> size{};
  ASSERT_GT(snprintf(size.data(), size.size(), "%zx", kBody.size() - 5), 0);
  send("\n" + std::string(size.data()) + "\r\n" + kBody.substr(5) + "\r\n0\r\n\r\n");
  ASSERT_TRUE(opens(1));
  EXPECT_EQ(call().request.body(), kBody);
}

TEST_F(SessionTest, SaysGoOnToClientsThatWaitForIt) {
  const std::string request = post(kBody, "Expect: 100-continue\r\n");
  send(request.substr(0, request.size() - kBody.size()));
  ASSERT_TRUE(gets("HTTP/1.1 100 Continue\r\n\r\n"));
  send(kBody);
  ASSERT_TRUE(opens(1));
}

TEST_F(SessionTest, RefusesBadFramingAndCloses) {
  send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_NE(got_.find("\r\nconnection: close\r\n"), std::string::npos);
}

TEST_F(SessionTest, RefusesABareLineFeedAtOnce) {
  send("POST / HTTP/1.1\nHost: a\n\n");
  ASSERT_TRUE(gets("HTTP/1.1 400"));
}

TEST_F(SessionTest, RefusesABodyOverTheLimitBeforeItCame) {
  send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n{");
  ASSERT_TRUE(gets("request_too_large"));
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 413"));
}

TEST_F(SessionTest, RefusesAHeadOverTheLimit) {
  send("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(config_.header_limit_bytes, 'x'));
  ASSERT_TRUE(gets("HTTP/1.1 431"));
}

TEST_F(SessionTest, TellsAClientThatIsTooSlow) {
  send("POST /v1/completions HTTP/1.1\r\nHost");
  loop_.poll();
  loop_.poll();
  pass(config_.header_timeout + std::chrono::seconds(1));
  ASSERT_TRUE(gets("HTTP/1.1 408"));
}

// So much of a body has come, and then nothing.
TEST_F(SessionTest, RefusesABodyThatStalls) {
  const std::string whole = post(std::string(100'000, ' '));
  send(whole.substr(0, 50'000));
  ASSERT_TRUE(loop_.run_until([this] { return bodies_.held() >= 50'000; }));
  pass(std::chrono::milliseconds(10'100));
  loop_.poll();
  EXPECT_EQ(got(), "") << "enough came in this stretch";
  pass(std::chrono::milliseconds(10'100));
  ASSERT_TRUE(gets("HTTP/1.1 408"));
  EXPECT_TRUE(gets("0 bytes of the request's body came within 10000 ms, and 10240 are the least"));
}

TEST_F(SessionTest, TakesABodyThatComesSlowlyButComes) {
  const std::string whole = post(kBody + std::string(40'000, ' '));
  size_t sent = whole.size() - 40'000;
  send(whole.substr(0, sent));
  loop_.poll();
  for (; sent < whole.size(); sent += 20'000) {
    send(whole.substr(sent, 20'000));
    loop_.poll();
    pass(std::chrono::milliseconds(10'100));
  }
  EXPECT_TRUE(opens(1));
}

TEST_F(SessionTest, ClosesAnIdleConnectionWithoutAWord) {
  loop_.poll();
  pass(config_.idle_timeout + std::chrono::seconds(1));
  ASSERT_TRUE(sees_the_end());
  EXPECT_EQ(got_, "");
}

TEST_F(SessionTest, LetsIdleClientsGoWhenItDrains) {
  loop_.poll();
  state_.draining = true;
  group_.drain();
  pass(std::chrono::seconds(1));
  ASSERT_TRUE(sees_the_end());
}

TEST_F(SessionTest, FinishesWhatRunsWhenItDrainsAndThenCloses) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  state_.draining = true;
  group_.drain();
  pass(std::chrono::seconds(1));
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(gets("[DONE]"));
  pass(std::chrono::seconds(1));
  ASSERT_TRUE(sees_the_end());
}

TEST_F(SessionTest, CountsTheRequestsThatItCutsShortAndNoOtherConnections) {
  Tcp::socket idle(loop_.io());
  connect(idle);
  loop_.poll();
  group_.end_soon();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
  EXPECT_EQ(state_.requests_cut, 0U);
  client_ = Tcp::socket(loop_.io());
  connect();
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  group_.end_soon();
  EXPECT_EQ(state_.requests_cut, 1U);
}

TEST_F(SessionTest, ServesARequestThatComesWhileItDrainsAndSaysThatItIsTheLast) {
  loop_.poll();
  state_.draining = true;
  group_.drain();
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(gets("[DONE]"));
  EXPECT_NE(got_.find("\r\nconnection: close\r\n"), std::string::npos);
}

TEST_F(SessionTest, NoticesAClientThatLeavesBehindMoreThanIsReadAhead) {
  send(post(kBody) + std::string(2 * Connection::kAheadBytes, 'x'));
  ASSERT_TRUE(opens(1));
  client_.close();
  EXPECT_TRUE(loop_.run_until([&] { return call().cancelled; }));
}

TEST_F(SessionTest, EndsEverythingWhenItIsToldTo) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  group_.abort();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
  EXPECT_TRUE(call().cancelled);
}

TEST_F(SessionTest, TellsAnUnwelcomeClientWhyAndWhetherItLivesIfThatIsWhatItAsks) {
  for (const auto& [path, status] : {std::pair("/v1/models", "503"), {"/ping", "200"}}) {
    client_.close();
    client_ = Tcp::socket(loop_.io());
    got_.clear();
    closed_ = false;
    connect(Welcome::kNo);
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(sees_the_end());
    EXPECT_TRUE(got_.starts_with("HTTP/1.1 " + std::string(status))) << got_;
  }
}

TEST_F(SessionTest, AnswersHeadWithoutABodyAndOptionsForBrowsers) {
  send("HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(gets("content-length: 17\r\n\r\n"));
  got_.clear();
  send(
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\nOrigin: http://page\r\n"
      "Access-Control-Request-Headers: authorization\r\n\r\n");
  ASSERT_TRUE(gets("\r\n\r\n"));
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 204")) << got_;
  EXPECT_NE(got_.find("access-control-allow-headers: authorization"), std::string::npos);
}

}  // namespace
}  // namespace penstock::http
