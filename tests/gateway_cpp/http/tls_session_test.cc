// A session whose client speaks TLS, or should.
#include <gtest/gtest.h>

#include "http/session_fixture.h"
#include "tls/made_certificate.h"
#include "tls/tls_client.h"

namespace penstock::http {
namespace {

class TlsSessionTest : public SessionTest {
 protected:
  TlsSessionTest() {
    client_.close();
    loop_.run_until([this] { return group_.size() == 0; });
    services_.tls = &port_;
    connect();
  }

  // One look at what has come, and at what is to be sent.
  void exchange() {
    secret_.take_in(got());
    got_.clear();
    shaken_ = shaken_ || secret_.shake_hands();
    if (shaken_) read_ += secret_.read();
    pass_on();
  }
  void pass_on() {
    const std::string out = secret_.output();
    if (!out.empty()) SessionTest::send(out);
  }
  template <class Done>
  bool until(const Done& done) {
    return loop_.run_until([&] {
      exchange();
      return done();
    });
  }
  bool shakes_hands() {
    return until([this] { return shaken_; });
  }
  bool reads(const std::string& text) {
    return until([&] { return read_.find(text) != std::string::npos; });
  }
  bool sees_the_end_of_tls() {
    return until([this] { return closed_; });
  }
  void send(const std::string& text) {
    secret_.write(text);
    pass_on();
  }

  test::CertificateFiles files_{test::made_certificate("a")};
  tls::CredentialsTable credentials_{*tls::Credentials::load(files_.files())};
  TlsPort port_{credentials_, aside_};
  test::TlsClient secret_;
  bool shaken_ = false;
  std::string read_;
};

TEST_F(TlsSessionTest, StreamsAnAnswerAndSaysGoodbyeBehindAWholeOne) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody, "Connection: close\r\n"));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\n");
  ASSERT_TRUE(reads("data: a\n\n"));
  EXPECT_FALSE(secret_.was_told_goodbye());
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(sees_the_end_of_tls());
  EXPECT_TRUE(read_.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(secret_.was_told_goodbye());
}

TEST_F(TlsSessionTest, SaysNoGoodbyeBehindAnAnswerThatIsCut) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\n");
  ASSERT_TRUE(reads("data: a\n\n"));
  group_.end_soon();
  ASSERT_TRUE(reads("\"error\""));
  pass(std::chrono::milliseconds(200));
  ASSERT_TRUE(sees_the_end_of_tls());
  EXPECT_FALSE(read_.ends_with("0\r\n\r\n"));
  EXPECT_FALSE(secret_.was_told_goodbye());
}

TEST_F(TlsSessionTest, TakesAGoodbyeForLeavingThoughTheSocketStaysOpen) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  secret_.say_goodbye();
  pass_on();
  EXPECT_TRUE(loop_.run_until([&] { return call().cancelled; }));
}

TEST_F(TlsSessionTest, TakesAGoodbyeThatCameWithTheRequestForLeaving) {
  ASSERT_TRUE(shakes_hands());
  secret_.write(post(kBody));
  secret_.say_goodbye();
  pass_on();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
}

TEST_F(TlsSessionTest, AnswersAGoodbyeBetweenRequests) {
  ASSERT_TRUE(shakes_hands());
  secret_.say_goodbye();
  pass_on();
  ASSERT_TRUE(sees_the_end_of_tls());
  EXPECT_TRUE(secret_.was_told_goodbye());
}

TEST_F(TlsSessionTest, HoldsTheReplicaBackWhileTheClientReadsNothing) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  uint64_t sent = 0;
  for (int i = 0; i < 64 && call().granted == sent; ++i) {
    call().chunk(event);
    sent += event.size();
  }
  ASSERT_LT(call().granted, sent);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  ASSERT_TRUE(reads("\r\n0\r\n\r\n"));
  EXPECT_GT(read_.size(), sent);
}

TEST_F(TlsSessionTest, TakesALargeBodyAndPipelinedRequests) {
  ASSERT_TRUE(shakes_hands());
  const std::string large = R"({"model":"mini","stream":true,"messages":[{"content":")" +
                            std::string(500'000, 'x') + "\"}]}";
  secret_.write(post(large) + "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string out = secret_.output();
  for (std::string_view rest = out; !rest.empty();) {
    const ssize_t n = ::send(client_.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n > 0) rest.remove_prefix(static_cast<size_t>(n));
    loop_.poll();
  }
  ASSERT_TRUE(opens(1));
  call().chunk("data: [DONE]\n\n");
  call().finish();
  EXPECT_TRUE(reads("\"live\""));
}

TEST_F(TlsSessionTest, KeepsRequestsThatComeInSeveralRecordsOfOneSegmentForAfterTheAnswer) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  call().chunk("data: a\n\n");
  ASSERT_TRUE(reads("data: a\n\n"));
  std::string segment;
  for (int i = 0; i < 3; ++i) {
    secret_.write("GET /livez HTTP/1.1\r\nHost: a\r\n");
    secret_.write("\r\n");
    segment += secret_.output();
  }
  SessionTest::send(segment);
  loop_.poll();
  EXPECT_EQ(read_.find("\"live\""), std::string::npos);
  call().chunk("data: [DONE]\n\n");
  call().finish();
  const auto answers = [this] {
    size_t count = 0;
    for (size_t at = 0; (at = read_.find("\"live\"", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_TRUE(until([&] { return answers() == 3; }));
}

TEST_F(TlsSessionTest, EndsTheConnectionOfAClientThatOnlyRenewsItsKeys) {
  ASSERT_TRUE(shakes_hands());
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  for (int i = 0; i < 200 && !call().cancelled; ++i) {
    SSL_key_update(secret_.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    secret_.shake_hands();
    const std::string out = secret_.output();
    if (::send(client_.native_handle(), out.data(), out.size(), MSG_NOSIGNAL) < 0) break;
    loop_.poll();
  }
  EXPECT_TRUE(loop_.run_until([&] { return call().cancelled; }));
}

TEST_F(TlsSessionTest, SendsALargeAnswerInPartsAndKeepsTheConnection) {
  ASSERT_TRUE(shakes_hands());
  send(post(R"({"model":"mini","messages":[{}]})"));
  ASSERT_TRUE(opens(1));
  call().content_type = "application/json";
  const std::string part(256UL << 10U, 'x');
  for (int i = 0; i < 16; ++i) call().chunk(part);
  call().chunk("end of it");
  call().finish();
  ASSERT_TRUE(reads("xend of it"));
  EXPECT_EQ(read_.size() - read_.find("\r\n\r\n") - 4, 16 * part.size() + 9);
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(reads("\"live\""));
}

TEST_F(TlsSessionTest, TellsPlainHttpWhatItShouldHaveSpoken) {
  SessionTest::send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_NE(got_.find("https://"), std::string::npos);
}

TEST_F(TlsSessionTest, EndsAtGarbage) {
  SessionTest::send("\x16\x03\x01garbage and more garbage");
  ASSERT_TRUE(sees_the_end());
  EXPECT_TRUE(got_.starts_with('\x15')) << "an alert";
  client_.close();
  connect();
  got_.clear();
  closed_ = false;
  SessionTest::send("\x01 nothing known");
  ASSERT_TRUE(sees_the_end());
  EXPECT_EQ(got_, "");
}

TEST_F(TlsSessionTest, GivesAHandshakeTheTimeOfAHead) {
  secret_.shake_hands();
  SessionTest::send(secret_.output().substr(0, 20));
  pass(config_.header_timeout - std::chrono::seconds(1));
  EXPECT_EQ(group_.size(), 1U);
  pass(std::chrono::seconds(2));
  client_.close();
  EXPECT_TRUE(loop_.run_until([&] { return group_.size() == 0; }));
}

TEST_F(TlsSessionTest, DrainsWithoutWaitingForAHandshake) {
  group_.drain();  // before it has begun
  loop_.poll();
  pass(std::chrono::seconds(1));
  EXPECT_TRUE(sees_the_end());
}

TEST_F(TlsSessionTest, ShowsNewClientsTheNewCertificate) {
  ASSERT_TRUE(shakes_hands());
  files_.write(test::made_certificate("b"));
  credentials_.replace(*tls::Credentials::load(files_.files()));
  send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(reads("\"live\"")) << "who is there goes on";
}

TEST_F(TlsSessionTest, ShakesNoHandsWithAClientTooMany) {
  client_.close();
  loop_.run_until([this] { return group_.size() == 0; });
  connect(Welcome::kNo);
  secret_.shake_hands();
  pass_on();
  ASSERT_TRUE(sees_the_end());
  EXPECT_EQ(got_, "");
}

// A connection whose client has shaken hands, without a session.
class TlsConnectionTest : public TlsSessionTest {
 protected:
  TlsConnectionTest() {
    client_.close();
    Tcp::acceptor acceptor(loop_.io(), Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    client_ = Tcp::socket(loop_.io());
    client_.connect(acceptor.local_endpoint());
    client_.non_blocking(true);
    connection_ = accepted(acceptor);
    auto channel = std::make_unique<tls::Channel>(*credentials_.current());
    std::string out;
    for (bool done = false; !secret_.shake_hands() || !done; secret_.take_in(out), out.clear()) {
      const std::string said = secret_.output();
      std::string_view in = said;
      done = channel->shake_hands(in, out) == tls::Channel::Handshake::kDone;
    }
    connection_->secure(std::move(channel), {});
  }
  ~TlsConnectionTest() override { connection_->close(); }

  // Fills the connection with records of one byte; how many bytes they bring.
  size_t send_tiny_records() {
    size_t records = 0;
    for (ssize_t sent = 1; sent > 0; ++records) {
      secret_.write("x");
      const std::string record = secret_.output();
      sent = ::send(client_.native_handle(), record.data(), record.size(), MSG_NOSIGNAL);
    }
    return records - 1;
  }

  std::shared_ptr<Connection> connection_;
};

TEST_F(TlsConnectionTest, CountsWhatIsOnTheWireTowardsATurn) {
  const size_t sent = send_tiny_records();
  ASSERT_GT(sent, 20'000U);
  size_t read = 0;
  while (!connection_->turn_is_over() && read < sent) {
    read += connection_->read().size();
    loop_.poll();
  }
  EXPECT_TRUE(connection_->turn_is_over());
  EXPECT_LT(read, 20'000U);
}

}  // namespace
}  // namespace penstock::http
