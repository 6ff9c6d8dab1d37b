// Streams that are told what becomes of the replica that they run on.
#include "proxy/lookout.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/believed_routes.h"
#include "event_loop.h"
#include "fixed_clock.h"
#include "routing/snapshots.h"

namespace penstock::proxy {
namespace {

class LookoutTest : public testing::Test {
 protected:
  LookoutTest() { announce({}); }

  // The time to hand over of each of two replicas.
  void announce(std::vector<base::WallTime> times) {
    times.resize(2);
    routing::RouteSnapshot snapshot{
        .version = 1, .deployments = {routing::deployment("mini")}, .replicas = {}};
    for (size_t i = 0; i < 2; ++i) {
      snapshot.replicas.push_back(routing::replica("r" + std::to_string(i), "mini"));
      snapshot.replicas.back().hand_over_at = times[i];
    }
    routes_.replace(snapshot);
  }
  void tell() { streams_.tell(*routes_.dispatch().read()); }

  test::FixedClock clock_;
  dispatch::BelievedRoutes routes_{clock_};
  test::EventLoop loop_;
  RunningStreams streams_;
};

// Ends when it is told anything, and takes others along.
struct Stream {
  explicit Stream(std::shared_ptr<const routing::Replica> at)
      : running(std::in_place, signal, std::move(at)) {}
  runtime::Signal signal;
  std::optional<Running> running;
  int roused = 0;
  std::vector<Stream*> others;

  runtime::Awaitable<void> run() {
    co_await signal.wait();
    ++roused;
    for (Stream* other : others) other->running.reset();
    running.reset();
  }
};

TEST_F(LookoutTest, AllOfAReplicaAreToldAndNoneOfOthers) {
  Stream here(routes_.of("mini").replicas().at(0));
  Stream there(routes_.of("mini").replicas().at(1));
  for (Stream* stream : {&here, &there}) {
    streams_.add(*stream->running);
    loop_.spawn(stream->run());
  }
  loop_.poll();
  announce({clock_.wall_now()});
  tell();
  loop_.poll();
  EXPECT_EQ(here.roused, 1);
  EXPECT_EQ(there.roused, 0);
  EXPECT_EQ(there.running->word, routing::Word::kNone);
  announce({clock_.wall_now(), clock_.wall_now()});
  tell();
  EXPECT_EQ(there.roused, 1);
}

TEST_F(LookoutTest, TheClockAloneTellsThem) {
  Stream stream(routes_.of("mini").replicas().at(0));
  streams_.add(*stream.running);
  announce({clock_.wall_now() + std::chrono::seconds(3)});
  tell();
  EXPECT_EQ(stream.running->word, routing::Word::kNone);
  clock_.advance(std::chrono::seconds(3));
  routes_.advance();
  tell();
  EXPECT_EQ(stream.running->word, routing::Word::kHandOver);
}

TEST_F(LookoutTest, OneThatEndsAsItIsToldMayTakeOthersWithIt) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(std::make_unique<Stream>(routes_.of("mini").replicas().at(0)));
    streams_.add(*streams.back()->running);
    loop_.spawn(streams.back()->run());
  }
  streams[0]->others = {streams[1].get()};
  loop_.poll();
  announce({clock_.wall_now()});
  tell();
  EXPECT_EQ(streams[0]->roused, 1);
  EXPECT_EQ(streams[1]->roused, 0);
  EXPECT_EQ(streams[2]->roused, 1);
  streams[1]->signal.raise();
  loop_.poll();
}

TEST_F(LookoutTest, OneThatBeginsAtAReplicaThatGoesKnowsItFromTheStart) {
  announce({clock_.wall_now()});
  Stream stream(routes_.of("mini").replicas().at(0));
  EXPECT_EQ(stream.running->word, routing::Word::kHandOver);
}

}  // namespace
}  // namespace penstock::proxy
