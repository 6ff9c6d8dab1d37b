#include "upstream/replica_connection.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <optional>
#include <vector>

#include "event_loop.h"
#include "raw_peer.h"

namespace penstock::upstream {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

class Listener final : public ReplicaConnection::Owner {
 public:
  bool on_message(std::string_view message) override {
    messages.emplace_back(message);
    return true;
  }
  void on_turn() override {
    ++turns;
    if (connection_to_close) connection_to_close->close();
  }
  void on_end(std::string_view why) override {
    ++ends;
    reason = why;
  }

  std::vector<std::string> messages;
  int turns = 0;
  int ends = 0;
  std::string reason;
  std::shared_ptr<ReplicaConnection> connection_to_close;
};

class ReplicaConnectionTest : public testing::Test {
 protected:
  ~ReplicaConnectionTest() override {
    if (connection_) connection_->close();
  }

  void start(const std::string& address, ConnectionPatience patience = {}) {
    connection_ = ReplicaConnection::start(loop_.io(), {address, "/s/m", ""}, owner_, patience);
  }
  void send(std::string_view message) {
    std::memcpy(connection_->add_message(static_cast<uint32_t>(message.size())), message.data(),
                message.size());
    connection_->flush();
  }
  template <class Done>
  bool talk_until(const Done& done) {
    return loop_.run_until([&] {
      peer_.talk();
      return done();
    });
  }
  static std::string framed(std::string_view message) {
    std::string out;
    append_message_prefix(out, static_cast<uint32_t>(message.size()));
    return out.append(message);
  }

  test::EventLoop loop_;
  Listener owner_;
  RawPeer peer_{loop_.io()};
  std::shared_ptr<ReplicaConnection> connection_;
};

TEST_F(ReplicaConnectionTest, CarriesMessagesBothWays) {
  start(peer_.address());
  send("before it is up");
  ASSERT_TRUE(talk_until([&] { return peer_.http2.body == framed("before it is up"); }));
  EXPECT_EQ(peer_.http2.headers[":path"], "/s/m");
  peer_.say(peer_.http2.answer(framed("one") + framed("two")));
  ASSERT_TRUE(loop_.run_until([&] { return owner_.messages.size() == 2; }));
  EXPECT_EQ(owner_.messages, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(owner_.ends, 0);
}

TEST_F(ReplicaConnectionTest, TakesANameForAnAddress) {
  start("localhost:" + peer_.port());
  EXPECT_TRUE(talk_until([&] { return peer_.http2.headers[":path"] == "/s/m"; }));
}

TEST_F(ReplicaConnectionTest, SendsMoreThanTheSocketTakesAtOnce) {
  start(peer_.address());
  const std::string large(20'000'000, 'x');
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  send(large);
  send("small");
  loop_.poll();  // the peer does not read yet: more than the kernel holds has to wait
  ASSERT_TRUE(talk_until(
      [&] { return peer_.http2.body.size() == large.size() + 5 + 2 * kMessagePrefixBytes; }));
  EXPECT_TRUE(peer_.http2.body.ends_with("small"));
}

TEST_F(ReplicaConnectionTest, ReadsMoreThanOneTurnTakes) {
  start(peer_.address());
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  const std::string message(100'000, 'x');
  std::string all;
  for (int i = 0; i < 100; ++i) all += framed(message);
  peer_.say(peer_.http2.answer(all));
  ASSERT_TRUE(talk_until([&] { return owner_.messages.size() == 100; }));
  EXPECT_EQ(owner_.messages.back(), message);
}

TEST_F(ReplicaConnectionTest, EndsOnceWhenThePeerHangsUp) {
  start(peer_.address());
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  peer_.say(peer_.http2.answer(framed("last")));
  peer_.hang_up();
  ASSERT_TRUE(loop_.run_until([&] { return owner_.ends > 0; }));
  EXPECT_EQ(owner_.messages, std::vector<std::string>{"last"});
  EXPECT_EQ(owner_.reason, "the connection broke: End of file");
  send("into the void");
  loop_.poll();
  EXPECT_EQ(owner_.ends, 1);
}

TEST_F(ReplicaConnectionTest, HandsOverWhatCameBeforeTheConnectionBroke) {
  start(peer_.address());
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  send("unread by a peer that leaves, which resets the connection");
  loop_.poll();
  peer_.say(peer_.http2.answer(framed("last")));
  peer_.hang_up();
  send("fails before anybody has looked what there is to read");
  ASSERT_TRUE(loop_.run_until([&] { return owner_.ends > 0; }));
  EXPECT_EQ(owner_.messages, std::vector<std::string>{"last"});
}

TEST_F(ReplicaConnectionTest, EndsWhenThePeerLivesButDoesNotRead) {
  RawPeer deaf(loop_.io(), 100'000);
  deaf.reads = false;
  start(
      deaf.address(),
      {.connect = milliseconds(20'000), .silence = milliseconds(100), .backlog_bytes = 1'000'000});
  const std::string message(400'000, 'x');
  for (int i = 0; i < 4; ++i) send(message);
  EXPECT_TRUE(loop_.run_until([&] {
    deaf.talk();
    return owner_.ends == 1;
  }));
}

TEST_F(ReplicaConnectionTest, StaysWhileABurstThatIsLargerThanThatIsOnItsWay) {
  start(peer_.address(), {.connect = milliseconds(20'000),
                          .silence = milliseconds(1'000),
                          .backlog_bytes = 1'000'000});
  const std::string message(4'000'000, 'x');
  for (int i = 0; i < 10; ++i) send(message);
  ASSERT_TRUE(talk_until(
      [&] { return peer_.http2.body.size() == 10 * (message.size() + kMessagePrefixBytes); }));
  EXPECT_EQ(owner_.ends, 0);
}

TEST_F(ReplicaConnectionTest, EndsWhenNobodyListens) {
  std::string address;
  {
    RawPeer short_lived(loop_.io());
    address = short_lived.address();
  }
  start(address);
  EXPECT_EQ(owner_.ends, 0) << "not before start() has returned";
  EXPECT_TRUE(loop_.run_until([&] { return owner_.ends == 1; }));
}

TEST_F(ReplicaConnectionTest, EndsWhenTheAddressIsNone) {
  for (const std::string address : {"", ":", "nonsense", "127.0.0.1", "127.0.0.1:", "[::1]",
                                    "127.0.0.1:99999", "127.0.0.1:8o", "no.such.host.invalid:1"}) {
    Listener owner;
    const auto connection = ReplicaConnection::start(loop_.io(), {address, "/s/m", ""}, owner);
    EXPECT_EQ(owner.ends, 0) << address;
    EXPECT_TRUE(loop_.run_until([&] { return owner.ends == 1; })) << address;
  }
}

TEST_F(ReplicaConnectionTest, EndsWhenThePeerIsNotGrpc) {
  start(peer_.address());
  ASSERT_TRUE(loop_.run_until([&] { return peer_.accepted(); }));
  peer_.say("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_TRUE(loop_.run_until([&] { return owner_.ends == 1; }));
}

TEST_F(ReplicaConnectionTest, EndsSoonWhenOnlyTheKernelAnswersForThePeer) {
  start(peer_.address(), {.connect = milliseconds(20), .silence = milliseconds(20'000)});
  EXPECT_TRUE(loop_.run_until([&] { return owner_.ends == 1; }));
}

TEST_F(ReplicaConnectionTest, EndsWhenThePeerFallsSilent) {
  start(peer_.address(), {.connect = milliseconds(20'000), .silence = milliseconds(20)});
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  EXPECT_TRUE(loop_.run_until([&] { return owner_.ends == 1; }));
}

TEST_F(ReplicaConnectionTest, StaysWhileAQuietPeerGivesSignsOfLife) {
  start(peer_.address(), {.connect = milliseconds(20'000), .silence = milliseconds(200)});
  ASSERT_TRUE(talk_until([&] { return peer_.http2.pings >= 2; }));
  EXPECT_EQ(owner_.ends, 0);
}

TEST_F(ReplicaConnectionTest, TellsThePeerWhenItIsClosedAndTheOwnerNothing) {
  start(peer_.address());
  ASSERT_TRUE(talk_until([&] { return !peer_.http2.headers.empty(); }));
  connection_->close();
  ASSERT_TRUE(talk_until([&] { return peer_.gone(); }));
  EXPECT_TRUE(peer_.http2.closed);
  EXPECT_EQ(owner_.ends, 0);
}

TEST_F(ReplicaConnectionTest, MayBeClosedBeforeItIsUp) {
  for (const std::string host : {"127.0.0.1:", "localhost:"}) {
    Listener owner;
    ReplicaConnection::start(loop_.io(), {host + peer_.port(), "/s/m", ""}, owner)->close();
    loop_.poll();
    EXPECT_EQ(owner.ends, 0);
  }
}

TEST_F(ReplicaConnectionTest, MayBeClosedByItsOwnerInTheMiddleOfATurn) {
  start(peer_.address());
  owner_.connection_to_close = connection_;
  ASSERT_TRUE(talk_until([&] { return peer_.gone(); }));
  EXPECT_EQ(owner_.turns, 1);
  EXPECT_EQ(owner_.ends, 0);
}

}  // namespace
}  // namespace penstock::upstream
