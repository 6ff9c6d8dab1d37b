#include "runtime/readiness.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "event_loop.h"

namespace penstock::runtime {
namespace {

// One end of a pair of sockets that is watched, and the other end, which does something to it.
class Watched final : private Readiness::Watcher {
 public:
  explicit Watched(Readiness& readiness) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
    mine_ = Descriptor(pair[0]);
    other_ = Descriptor(pair[1]);
    registration_ = readiness.watch(pair[0], *this);
    EXPECT_TRUE(registration_);
  }

  int number() const { return mine_.number(); }
  void write() { EXPECT_EQ(::send(other_.number(), "x", 1, MSG_NOSIGNAL), 1); }
  void stop_writing() { ::shutdown(other_.number(), SHUT_WR); }
  void read_all() const {
    std::array<char, 4096> some{};
    while (::recv(mine_.number(), some.data(), some.size(), 0) > 0) continue;
  }
  void fill() const {
    const std::array<char, 4096> some{};
    while (::send(mine_.number(), some.data(), some.size(), MSG_NOSIGNAL) > 0) continue;
  }
  void drain() const {
    std::array<char, 4096> some{};
    while (::recv(other_.number(), some.data(), some.size(), 0) > 0) continue;
  }
  void end() { registration_.end(); }

  int told = 0;
  uint32_t last = 0;
  std::function<void()> when_told;

 private:
  void on_ready(uint32_t events) override {
    ++told;
    last = events;
    if (when_told) when_told();
  }

  Descriptor mine_;
  Descriptor other_;
  Readiness::Registration registration_;
};

class ReadinessTest : public testing::Test {
 protected:
  test::EventLoop loop_;
  Readiness readiness_{loop_.io()};
};

TEST_F(ReadinessTest, TellsOfEachNewsOnce) {
  Watched one(readiness_);
  loop_.poll();
  EXPECT_EQ(one.told, 1) << "what holds at the beginning";
  EXPECT_EQ(one.last, EPOLLOUT);
  one.write();
  loop_.poll();
  EXPECT_EQ(one.told, 2);
  EXPECT_EQ(one.last, EPOLLIN | EPOLLOUT);
  loop_.poll();
  EXPECT_EQ(one.told, 2) << "though nobody has read it";
  one.write();
  loop_.poll();
  EXPECT_EQ(one.told, 3);
}

TEST_F(ReadinessTest, TellsOfTheEndBehindWhatWasRead) {
  Watched one(readiness_);
  one.write();
  loop_.poll();
  one.read_all();
  one.stop_writing();
  loop_.poll();
  EXPECT_EQ(one.told, 2);
  EXPECT_NE(one.last & EPOLLRDHUP, 0U);
}

TEST_F(ReadinessTest, TellsOfTheEndTogetherWithWhatIsBeforeIt) {
  Watched one(readiness_);
  one.write();
  one.stop_writing();
  loop_.poll();
  EXPECT_EQ(one.told, 1);
  EXPECT_EQ(one.last & (EPOLLIN | EPOLLRDHUP), EPOLLIN | EPOLLRDHUP);
}

TEST_F(ReadinessTest, TellsWhenAFullSocketTakesBytesAgain) {
  Watched one(readiness_);
  one.fill();
  loop_.poll();
  const int before = one.told;
  one.drain();
  loop_.poll();
  EXPECT_GT(one.told, before);
  EXPECT_NE(one.last & EPOLLOUT, 0U);
}

TEST_F(ReadinessTest, TellsNobodyWhoHasEndedInTheSameTurn) {
  std::optional<Watched> first(readiness_);
  std::optional<Watched> second(readiness_);
  loop_.poll();
  int told = 0;
  const auto end_other = [&](std::optional<Watched>& other) {
    return [&told, &other] {
      ++told;
      other.reset();
    };
  };
  first->when_told = end_other(second);
  second->when_told = end_other(first);
  first->write();
  second->write();
  loop_.poll();
  EXPECT_EQ(told, 1);
  EXPECT_NE(first.has_value(), second.has_value());
}

TEST_F(ReadinessTest, TellsNoNewcomerOfWhatWasSaidOfThePreviousOne) {
  auto first = std::make_unique<Watched>(readiness_);
  auto second = std::make_unique<Watched>(readiness_);
  loop_.poll();
  std::unique_ptr<Watched> newcomer;
  const auto replace = [&](std::unique_ptr<Watched>& other) {
    return [&] {
      const int number = other->number();
      other.reset();
      newcomer = std::make_unique<Watched>(readiness_);
      EXPECT_EQ(newcomer->number(), number) << "the least that is free";
      newcomer->when_told = [&] { EXPECT_EQ(newcomer->last, EPOLLOUT) << "its own beginning"; };
    };
  };
  first->when_told = replace(second);
  second->when_told = replace(first);
  first->write();
  second->write();
  loop_.poll();
  ASSERT_TRUE(newcomer);
  EXPECT_EQ(newcomer->told, 1);
}

TEST_F(ReadinessTest, TellsAWatcherThatEndsItselfNoMore) {
  auto one = std::make_unique<Watched>(readiness_);
  loop_.poll();
  Watched& watched = *one;
  watched.when_told = [&] { watched.end(); };
  watched.write();
  loop_.poll();
  EXPECT_EQ(watched.told, 2);
  watched.write();
  loop_.poll();
  EXPECT_EQ(watched.told, 2);
}

TEST_F(ReadinessTest, TellsAllWhereNotAllAreToldAtOnce) {
  std::vector<std::unique_ptr<Watched>> many;
  for (int i = 0; i < 2 * Readiness::kToldAtOnce + 1; ++i) {
    many.push_back(std::make_unique<Watched>(readiness_));
  }
  loop_.poll();
  for (const auto& one : many) EXPECT_EQ(one->told, 1);
  for (const auto& one : many) one->write();
  loop_.poll();
  for (const auto& one : many) EXPECT_EQ(one->told, 2);
}

TEST_F(ReadinessTest, WatchesNothingThatIsNotOpen) {
  struct Nobody : Readiness::Watcher {
    void on_ready(uint32_t) override { ADD_FAILURE(); }
  } nobody;
  EXPECT_FALSE(readiness_.watch(-1, nobody));
  Watched one(readiness_);
  loop_.poll();
  EXPECT_EQ(one.told, 1);
}

}  // namespace
}  // namespace penstock::runtime
