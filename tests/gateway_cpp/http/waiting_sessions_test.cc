#include "http/waiting_sessions.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>

#include "http/session_fixture.h"

namespace penstock::http {
namespace {

const std::string kAsk = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";

class WaitingSessionsTest : public SessionTest {
 protected:
  // A client that has said nothing yet; its session waits.
  Tcp::socket newcomer(Welcome welcome = Welcome::kYes) {
    Tcp::socket client(loop_.io());
    connect(client, welcome);
    loop_.poll();
    return client;
  }
  bool is_open(Tcp::socket& client) {
    loop_.poll();
    char byte = 0;
    return ::recv(client.native_handle(), &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
  }
  bool ends(Tcp::socket& client) {
    return loop_.run_until([&] { return !is_open(client); });
  }
  // `client_` has asked and waits again.
  void make_idle() {
    send(kAsk);
    ASSERT_TRUE(gets("\"live\""));
    loop_.poll();
  }
};

TEST_F(WaitingSessionsTest, LetAnIdleOneGoBeforeOnesThatHaveJustCome) {
  make_idle();
  Tcp::socket young = newcomer();
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  EXPECT_TRUE(ends(client_));
  EXPECT_TRUE(is_open(young));
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny)) << "where nobody is idle";
  EXPECT_TRUE(ends(young));
  EXPECT_FALSE(waiting_.make_room(Waiting::kAny));
}

TEST_F(WaitingSessionsTest, LetThoseBeyondTheLimitGoForTheirLikeAlone) {
  Tcp::socket over = newcomer(Welcome::kNo);
  Tcp::socket another = newcomer(Welcome::kNo);
  pass(std::chrono::milliseconds(1200));
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  EXPECT_TRUE(ends(client_));
  EXPECT_FALSE(waiting_.make_room(Waiting::kAny));
  EXPECT_FALSE(waiting_.claim(Waiting::kAny));
  ASSERT_TRUE(waiting_.make_room(Waiting::kOver));
  EXPECT_TRUE(ends(over));
  EXPECT_TRUE(is_open(another));
}

TEST_F(WaitingSessionsTest, LetTheLongSilentGoFirst) {
  make_idle();
  Tcp::socket silent = newcomer();
  pass(std::chrono::milliseconds(1200));
  Tcp::socket young = newcomer();
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  EXPECT_TRUE(ends(silent));
  EXPECT_TRUE(is_open(client_));
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  EXPECT_TRUE(ends(client_));
  EXPECT_TRUE(is_open(young));
}

TEST_F(WaitingSessionsTest, AreAskedForAnotherThreadsIdleOnesBeforeTheirOwnNewcomers) {
  loop_.poll();
  EXPECT_FALSE(waiting_.make_room(Waiting::kLong)) << "it has just come";
  EXPECT_FALSE(waiting_.claim(Waiting::kLong));
  make_idle();
  EXPECT_TRUE(waiting_.claim(Waiting::kLong));
  EXPECT_FALSE(waiting_.claim(Waiting::kLong)) << "the only one is spoken for";
  waiting_.give_way(Waiting::kLong);
  EXPECT_TRUE(ends(client_));
}

TEST_F(WaitingSessionsTest, LetNoNewcomerGoForAnIdleOneThatHasAskedMeanwhile) {
  make_idle();
  Tcp::socket young = newcomer();
  ASSERT_TRUE(waiting_.claim(Waiting::kLong));
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  waiting_.give_way(Waiting::kLong);
  EXPECT_TRUE(is_open(young));
  EXPECT_TRUE(is_open(client_));
  ASSERT_TRUE(waiting_.claim(Waiting::kAny));
  waiting_.give_way(Waiting::kAny);
  EXPECT_TRUE(ends(young)) << "where newcomers were asked, too";
}

TEST_F(WaitingSessionsTest, WaitNoMoreWhenTheirReadingThrows) {
  loop_.poll();
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  ASSERT_TRUE(ends(client_));
  const auto connection =
      std::make_shared<Connection>(runtime::Descriptor(), shared_, config_.write_timeout);
  Session session(connection, services_, Welcome::kYes);
  const auto read = [&] {
    const WaitingSessions::Stay stay(waiting_, session);
    EXPECT_TRUE(session.waiting_link.is_linked());
    throw std::bad_alloc();
  };
  EXPECT_THROW(read(), std::bad_alloc);
  EXPECT_FALSE(session.waiting_link.is_linked());
  EXPECT_FALSE(waiting_.claim(Waiting::kAny)) << "nobody waits";
}

TEST_F(WaitingSessionsTest, AreNotThoseWhoseRequestHadComeWhenTheyWereTaken) {
  loop_.poll();
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny));
  ASSERT_TRUE(ends(client_));
  Tcp::acceptor acceptor(loop_.io(), Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  client_ = Tcp::socket(loop_.io());
  client_.connect(acceptor.local_endpoint());
  client_.non_blocking(true);
  send(post(kBody));
  asio::post(loop_.io(), [&] {
    start(accepted(acceptor), Welcome::kYes);
    EXPECT_FALSE(waiting_.make_room(Waiting::kAny));
  });
  EXPECT_TRUE(opens(1));
}

TEST_F(WaitingSessionsTest, AreNotThoseThatAreAnswered) {
  send(post(kBody));
  ASSERT_TRUE(opens(1));
  EXPECT_FALSE(waiting_.make_room(Waiting::kAny));
  EXPECT_FALSE(waiting_.claim(Waiting::kAny));
}

TEST_F(WaitingSessionsTest, GiveWayForAnotherThreadOnceForEachThatWaits) {
  loop_.poll();
  WaitingSessions none(timers_);
  WaitingRooms rooms;
  rooms.add(loop_.io(), waiting_);
  rooms.add(loop_.io(), none);
  EXPECT_FALSE(rooms.make_room_beside(waiting_, Waiting::kAny)) << "nobody waits at the other one";
  for (int i = 0; i < 2; ++i) {
    Tcp::socket& client = client_;
    ASSERT_TRUE(rooms.make_room_beside(none, Waiting::kAny));
    EXPECT_FALSE(rooms.make_room_beside(none, Waiting::kAny)) << "the only one is spoken for";
    EXPECT_TRUE(ends(client));
    client_ = newcomer();
  }
}

TEST_F(WaitingSessionsTest, HaveAnotherThreadGiveWayWhereTheOneThatWasAskedForHasGone) {
  loop_.poll();
  WaitingSessions none(timers_);
  WaitingSessions other(timers_);
  WaitingRooms rooms;
  for (WaitingSessions* room : {&waiting_, &other, &none}) rooms.add(loop_.io(), *room);
  const auto connection =
      std::make_shared<Connection>(runtime::Descriptor(), shared_, config_.write_timeout);
  Session beside(connection, services_, Welcome::kYes);
  const WaitingSessions::Stay stay(other, beside);
  ASSERT_TRUE(rooms.make_room_beside(none, Waiting::kAny));
  ASSERT_TRUE(waiting_.make_room(Waiting::kAny)) << "it goes for somebody else meanwhile";
  EXPECT_TRUE(loop_.run_until([&] { return !beside.waiting_link.is_linked(); }));
}

}  // namespace
}  // namespace penstock::http
