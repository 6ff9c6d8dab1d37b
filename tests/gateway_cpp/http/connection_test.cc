#include "http/connection.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>

#include "http/session_fixture.h"

namespace penstock::http {
namespace {

// A connection without a session; the client is `client_`.
class ConnectionTest : public SessionTest {
 protected:
  ConnectionTest() { reconnect(); }
  ~ConnectionTest() override { connection_->close(); }

  // receive_buffer: of the client; 0: as the system likes. most_unsent: of the connection,
  // likewise.
  void reconnect(int receive_buffer = 0, int most_unsent = 0) {
    client_.close();
    if (connection_) connection_->close();
    Tcp::acceptor acceptor(loop_.io(), Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    client_ = Tcp::socket(loop_.io(), Tcp::v4());
    if (receive_buffer > 0) {
      client_.set_option(asio::socket_base::receive_buffer_size(receive_buffer));
    }
    if (most_unsent > 0) {
      ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent,
                   sizeof most_unsent);
    }
    client_.connect(acceptor.local_endpoint());
    client_.non_blocking(true);
    connection_ = accepted(acceptor);
  }

  // All that comes until it has `size` bytes or the client is gone.
  std::string reads(size_t size) {
    std::string all;
    loop_.run_until([&] {
      all += connection_->read();
      return all.size() >= size || connection_->gone();
    });
    return all;
  }
  // The client reads no more than so many bytes in all. True: it has them.
  bool takes(size_t upto) {
    std::array<char, 4096> part{};
    const size_t most = std::min(part.size(), upto - got_.size());
    const ssize_t n = ::recv(client_.native_handle(), part.data(), most, 0);
    if (n > 0) got_.append(part.data(), static_cast<size_t>(n));
    return got_.size() == upto;
  }
  bool is_gone() {
    return loop_.run_until([&] { return connection_->read().empty() && connection_->gone(); });
  }

  std::shared_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, ReadsWhatComesBehindAShortRead) {
  for (const std::string part : {"one", "two", "three"}) {
    send(part);
    EXPECT_EQ(reads(part.size()), part);
    EXPECT_EQ(connection_->read(), "");
    EXPECT_FALSE(connection_->gone());
  }
}

TEST_F(ConnectionTest, SeesTheEndThatWasToldWithTheLastBytes) {
  send("last");
  client_.shutdown(Tcp::socket::shutdown_send);
  loop_.poll();
  EXPECT_EQ(connection_->read(), "last");
  EXPECT_EQ(connection_->read(), "");
  EXPECT_TRUE(connection_->gone()) << "nothing tells of it again";
}

TEST_F(ConnectionTest, SeesTheEndThatCameBetweenTheNewsAndTheRead) {
  send("last");
  loop_.poll();
  client_.shutdown(Tcp::socket::shutdown_send);
  EXPECT_EQ(connection_->read(), "last");
  EXPECT_TRUE(is_gone());
}

TEST_F(ConnectionTest, SeesAResetBehindTheLastBytes) {
  send("last");
  loop_.poll();
  EXPECT_EQ(connection_->read(), "last");
  client_.set_option(asio::socket_base::linger(true, 0));
  client_.close();
  EXPECT_TRUE(is_gone());
}

TEST_F(ConnectionTest, ReadsOnBehindAMarkOfUrgentData) {
  send("before");
  ASSERT_EQ(::send(client_.native_handle(), "!", 1, MSG_OOB), 1);
  send("behind");
  loop_.poll();
  EXPECT_EQ(reads(12), "beforebehind");
}

TEST_F(ConnectionTest, TellsWhoWaitsForBytesThatWereThereBefore) {
  send("early");
  loop_.poll();
  bool told = false;
  const auto wait = [&]() -> Awaitable<void> {
    connection_->begin_answer({});
    connection_->end_answer();
    co_await connection_->signal().wait();
    told = true;
  };
  loop_.spawn(wait());
  EXPECT_TRUE(loop_.run_until([&] { return told; }));
  EXPECT_EQ(connection_->read(), "early");
}

TEST_F(ConnectionTest, SendsOnWhenAFullSocketTakesBytesAgain) {
  const std::string much(8UL << 20U, 'x');
  ASSERT_EQ(connection_->send(much), Sent::kBlocked);
  loop_.poll();
  bool sent = false;
  const auto flush = [&]() -> Awaitable<void> {
    const Sent outcome = co_await connection_->flush();
    sent = outcome == Sent::kAll;
  };
  loop_.spawn(flush());
  EXPECT_TRUE(loop_.run_until([&] { return got().size() == much.size(); }));
  EXPECT_TRUE(loop_.run_until([&] { return sent; }));
}

TEST_F(ConnectionTest, IsGoneWithASocketThatCannotBeWatched) {
  const auto none =
      std::make_shared<Connection>(runtime::Descriptor(), shared_, config_.write_timeout);
  EXPECT_TRUE(none->gone());
}

TEST_F(ConnectionTest, SendsWhatWasPutOffWhenTheBatchCloses) {
  {
    const runtime::SendBatch::Open batch(sends_);
    EXPECT_EQ(connection_->send_soon("one "), Sent::kAll);
    EXPECT_TRUE(connection_->behind());
    loop_.poll();
    EXPECT_EQ(got(), "");
  }
  EXPECT_FALSE(connection_->behind());
  EXPECT_EQ(connection_->send_soon("two"), Sent::kAll);
  EXPECT_TRUE(gets("one two"));
}

TEST_F(ConnectionTest, KeepsTheOrderOfWhatFollowsWhatWasPutOff) {
  {
    const runtime::SendBatch::Open batch(sends_);
    connection_->send_soon("one ");
    EXPECT_EQ(connection_->send("two "), Sent::kBlocked);
    EXPECT_EQ(connection_->send_soon("three"), Sent::kBlocked);
  }
  asio::co_spawn(loop_.io(), connection_->flush(), asio::detached);
  EXPECT_TRUE(gets("one two three"));
}

TEST_F(ConnectionTest, PutsOffAgainWhatFollowsAFlush) {
  const auto write = [&]() -> Awaitable<void> {
    const runtime::SendBatch::Open batch(sends_);
    connection_->send_soon("one ");
    co_await connection_->flush();
    connection_->send_soon("two ");
  };
  asio::co_spawn(loop_.io(), write(), asio::detached);
  EXPECT_TRUE(gets("one two "));
  {
    const runtime::SendBatch::Open batch(sends_);
    connection_->send_soon("three");
  }
  EXPECT_TRUE(gets("one two three"));
}

TEST_F(ConnectionTest, TellsWhenTheClientDidNotTakeWhatWasPutOff) {
  const std::string piece(4096, 'x');
  size_t sent = 0;
  for (; !connection_->behind(); sent += piece.size()) {
    const runtime::SendBatch::Open batch(sends_);
    ASSERT_EQ(connection_->send_soon(piece), Sent::kAll);
  }
  bool told = false;
  bool caught_up = false;
  const auto wait = [&]() -> Awaitable<void> {
    co_await connection_->signal().wait();
    told = true;
    co_await connection_->flush();
    caught_up = true;
  };
  asio::co_spawn(loop_.io(), wait(), asio::detached);
  loop_.poll();
  EXPECT_TRUE(told);
  EXPECT_FALSE(caught_up);
  EXPECT_TRUE(loop_.run_until([&] { return got().size() == sent; }));
  EXPECT_TRUE(caught_up);
}

TEST_F(ConnectionTest, KeepsAClientThatTakesEnoughButLessThanTheSystemTellsOf) {
  reconnect(16 << 10, 128 << 10);  // of 128 KiB, it tells of room when the half is sent
  ASSERT_EQ(connection_->send(std::string(4UL << 20U, 'x')), Sent::kBlocked);
  asio::co_spawn(loop_.io(), connection_->flush(), asio::detached);
  for (size_t window = 1; window <= 8; ++window) {
    ASSERT_TRUE(loop_.run_until([&] { return takes(window * 90'000); }));
    pass(config_.write_timeout + 2 * runtime::TimerWheel::kTick);
    ASSERT_FALSE(connection_->gone()) << "given up after " << got_.size() << " bytes";
  }
}

}  // namespace
}  // namespace penstock::http
