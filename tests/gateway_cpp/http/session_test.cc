// Sessions over real sockets, in front of replicas that the test plays.
#include "http/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/connect.hpp>

#include "event_loop.h"
#include "http/session_group.h"
#include "log_capture.h"
#include "proxy/fake_upstream.h"
#include "routing/least_loaded.h"
#include "routing/snapshots.h"

namespace penstock::http {
namespace {

using Tcp = asio::ip::tcp;

const std::string kBody = R"({"model":"mini","stream":true,"messages":[{}]})";

std::string post(const std::string& body, const std::string& headers = "") {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    table_.replace({.version = 1,
                    .deployments = {routing::deployment("mini")},
                    .replicas = {routing::replica("r1", "mini")}});
    connect();
  }
  ~SessionTest() override {
    group_.abort();
    loop_.run_until([this] { return group_.size() == 0; });
  }

  // Makes `client_` a new connection with a session behind it.
  void connect(Welcome welcome = Welcome::kYes) {
    Tcp::acceptor acceptor(loop_.io(), Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    client_.connect(acceptor.local_endpoint());
    Connection::Socket socket(loop_.io().get_executor());
    acceptor.accept(socket);
    socket.non_blocking(true);
    client_.non_blocking(true);
    group_.start(std::make_shared<Connection>(std::move(socket), timers_, config_.write_timeout),
                 welcome);
  }

  void send(const std::string& bytes) {
    ASSERT_EQ(::send(client_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Everything the client has read so far.
  const std::string& got() {
    std::array<char, 65536> part{};
    for (ssize_t n = 0; (n = ::recv(client_.native_handle(), part.data(), part.size(), 0)) >= 0;) {
      if (n == 0) {
        closed_ = true;
        break;
      }
      got_.append(part.data(), static_cast<size_t>(n));
    }
    return got_;
  }

  bool gets(const std::string& text) {
    return loop_.run_until([&] { return got().find(text) != std::string::npos; });
  }
  bool sees_the_end() {
    return loop_.run_until([&] { return static_cast<void>(got()), closed_; });
  }
  bool opens(size_t calls) {
    return loop_.run_until([&] { return upstream_.calls.size() == calls; });
  }
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    timers_.advance(clock_.steady_now());
    loop_.poll();
  }
  proxy::FakeUpstream::Opened& call(size_t i = 0) { return *upstream_.calls.at(i); }

  test::EventLoop loop_;
  test::FixedClock clock_;
  static base::GatewayConfig config() {
    base::GatewayConfig config;
    config.allow_hosts = {"a"};
    config.cors_origin = "*";
    return config;
  }

  test::LogCapture log_;
  base::GatewayConfig config_ = config();
  base::Metrics metrics_;
  base::MetricsShard& shard_ = metrics_.add_shard();
  proxy::GatewayState state_;
  admission::Suspects suspects_{"gw-1", std::chrono::minutes(10)};
  proxy::TimerWheel timers_{clock_.steady_now()};
  openai::RequestParser parser_;
  routing::RouteTable table_;
  routing::RouteReader routes_{table_};
  routing::LeastLoaded policy_;
  proxy::FakeUpstream upstream_;
  bool broken_ = false;  // the pages throw, as nothing should
  proxy::RequestFlow flow_{{clock_, log_.log(), config_, shard_, state_, suspects_, timers_,
                            parser_, routes_, policy_, upstream_}};
  RequestIds ids_;
  StatusPages pages_{clock_, metrics_, state_, routes_, [this] {
                       if (broken_) throw std::runtime_error("broken");
                       return control_plane::SubscriptionState();
                     }};
  Doors doors_{config_, "box"};
  proxy::BodyBudget bodies_{64UL << 20U};
  WaitingSessions waiting_;
  Services services_{clock_, log_.log(), config_, shard_,  state_,   state_.connections,
                     ids_,   pages_,     doors_,  bodies_, waiting_, &flow_};
  SessionGroup group_{loop_.io(), services_, log_.log()};
  Tcp::socket client_{loop_.io()};
  std::string got_;
  bool closed_ = false;
};

TEST_F(SessionTest, FramesTheEventsOfOneWriteAsOneChunk) {
  send(post(kBody, "X-Request-Id: mine\r\nOrigin: http://page\r\n"));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\ndata: b\n\n", 2);
  ASSERT_TRUE(gets("\r\n\r\n12\r\ndata: a\n\ndata: b\n\n\r\n"));
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"));
  EXPECT_NE(got_.find("\r\nx-request-id: req_"), std::string::npos);
  EXPECT_NE(got_.find("\r\nx-client-request-id: mine\r\n"), std::string::npos);
  EXPECT_NE(got_.find("\r\ntransfer-encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(got_.find("\r\naccess-control-allow-origin: *\r\n"), std::string::npos);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(gets("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"));
}

TEST_F(SessionTest, AnswersPipelinedRequestsInTheirOrder) {
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" + post(kBody) +
       "GET /v1/models/other HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(opens(1));
  call().chunk("data: [DONE]\n\n");
  EXPECT_EQ(got().find("404"), std::string::npos) << "the stream before it has not ended";
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
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  uint64_t sent = 0;
  // Until the sockets are full: from then on no credit comes back.
  for (int i = 0; i < 64 && call().granted == sent; ++i) {
    call().chunk(event);
    sent += event.size();
  }
  const uint64_t granted = call().granted;
  ASSERT_LT(granted, sent);
  call().chunk(event);
  EXPECT_EQ(call().granted, granted);
  call().finish();
  ASSERT_TRUE(gets("0\r\n\r\n"));
}

TEST_F(SessionTest, GivesUpOnAClientThatTakesNothingForTooLong) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  for (uint64_t sent = 0; call().granted == sent; sent += event.size()) call().chunk(event);
  pass(config_.write_timeout + std::chrono::seconds(1));
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
}

TEST_F(SessionTest, GivesUpOnAClientThatTakesNextToNothing) {
  client_.close();
  client_ = Tcp::socket(loop_.io(), Tcp::v4());
  client_.set_option(asio::socket_base::receive_buffer_size(4096));
  connect();
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
  ASSERT_TRUE(sees_the_end());
  EXPECT_NE(got_.find(event), std::string::npos);
  EXPECT_NE(got_.find("\"code\":\"internal_error\""), std::string::npos);
  EXPECT_TRUE(got_.ends_with("}\n\n\r\n")) << "no last chunk: the answer is not whole";
}

TEST_F(SessionTest, ClosesAStreamThatWasCutOff) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\n");
  call().lose(upstream::CallFailure::Source::kLost);
  ASSERT_TRUE(sees_the_end());
  EXPECT_NE(got_.find("data: {\"error\":{"), std::string::npos);
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

TEST_F(SessionTest, EndsEverythingWhenItIsToldTo) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  group_.abort();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
  EXPECT_TRUE(call().cancelled);
}

TEST_F(SessionTest, TellsAnUnwelcomeClientWhy) {
  client_.close();
  client_ = Tcp::socket(loop_.io());
  connect(Welcome::kNo);
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 503"));
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
