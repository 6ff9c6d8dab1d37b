// Load on sessions and by WatchLoad, over real gRPC connections.
#include <gtest/gtest.h>

#include "served.h"

namespace penstock::replica {
namespace {

using test::chat_request;
using test::Client;
using test::paced;
using test::ServedTest;

class LoadWatchTest : public ServedTest {};

TEST_F(LoadWatchTest, WatchersHearTheLoadAtOnceAndEveryChange) {
  serve();
  grpc::ClientContext context;
  const auto reader = stub_->WatchLoad(&context, {});
  v1::Load load;
  ASSERT_TRUE(reader->Read(&load));
  EXPECT_EQ(load.state(), v1::REPLICA_STATE_READY);
  enter(v1::REPLICA_STATE_DRAINING);
  while (load.state() != v1::REPLICA_STATE_DRAINING) ASSERT_TRUE(reader->Read(&load));
  context.TryCancel();
  reader->Finish();
}

TEST_F(LoadWatchTest, ASessionThatAsksHearsTheLoadAtOnceAndAgainEachSecond) {
  serve();
  Client client(stub_.get());
  client.hello("gw-1", true);
  const auto began = std::chrono::steady_clock::now();
  client.send();
  ASSERT_TRUE(client.read());
  ASSERT_EQ(client.loads.size(), 1u);
  EXPECT_EQ(client.loads[0].state(), v1::REPLICA_STATE_READY);
  EXPECT_EQ(client.loads[0].gateways(), 1u);
  ASSERT_TRUE(client.read());
  ASSERT_TRUE(client.read());
  EXPECT_EQ(client.loads.size(), 3u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST_F(LoadWatchTest, ASessionThatDoesNotAskHearsOfItsCallsAlone) {
  serve();
  Client client(stub_.get());
  client.hello("gw-1", false);
  client.start(1, chat_request(R"("max_tokens":5)"));
  client.send();
  client.read_until_ended(1);
  EXPECT_TRUE(client.half_close().ok());
  EXPECT_TRUE(client.loads.empty());
}

TEST_F(LoadWatchTest, TheEnginesStepsAreToldAsTheyAreMadeButNotMoreOftenThanEach15Ms) {
  serve(paced(1000));
  Client client(stub_.get());
  client.hello("gw-1", true);
  client.start(1, chat_request(R"("max_tokens":300,"stream":true)"));
  client.send();
  const auto began = std::chrono::steady_clock::now();
  client.read_until_ended(1);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(client.loads.size(), 5u);
  EXPECT_LE(client.loads.size(), 4 + took / std::chrono::milliseconds(15));
  uint64_t steps = 0;
  for (const v1::Load& load : client.loads) {
    EXPECT_GE(load.steps(), steps);
    steps = load.steps();
  }
  ASSERT_TRUE(client.read_until_load([](const v1::Load& load) {
    return load.calls() == 0 && load.running() == 0 && load.tokens() == 300;
  }));
  EXPECT_EQ(client.loads.back().prompt_tokens(), 2u);
  EXPECT_EQ(client.loads.back().step_us(), 1000u);
}

// A frame of its own wakes a gateway once more for each step.
TEST_F(LoadWatchTest, EventsTakeTheLoadAlong) {
  serve(paced(25));
  Client client(stub_.get());
  client.hello("gw-1", true);
  client.start(1, chat_request(R"("max_tokens":25,"stream":true)"));
  client.send();
  size_t along = 0;
  size_t with_events = 0;  // reads; fewer than tokens where the machine is busy
  while (client.ended.empty()) {
    const size_t loads = client.loads.size();
    const size_t bytes = client.bodies[1].size();
    ASSERT_TRUE(client.read());
    if (client.bodies[1].size() == bytes) continue;
    ++with_events;
    if (client.loads.size() > loads) ++along;
  }
  EXPECT_GE(along * 5, with_events * 3);
  EXPECT_LE(client.loads.size() - along, 10u);
  EXPECT_TRUE(client.read_until_load([](const v1::Load& load) { return load.calls() == 0; }));
}

// The gateway gives the places of those that ended away before it reads the load.
TEST_F(LoadWatchTest, ALoadThatComesWithTheEndsOfCallsDoesNotCountThem) {
  serve(paced(25));
  Client client(stub_.get());
  client.hello("gw-1", true);
  uint64_t calls = 0;
  for (size_t together = 0; together == 0 && calls < 20;) {
    client.start(++calls, chat_request(R"("max_tokens":2,"stream":true)"));
    client.send();
    while (client.ended.size() < calls) {
      const size_t loads = client.loads.size();
      ASSERT_TRUE(client.read());
      if (client.loads.size() == loads || client.ended.size() < calls) continue;
      EXPECT_EQ(client.loads.back().calls(), 0u);
      ++together;
    }
  }
  EXPECT_LT(calls, 20u) << "none came together";
}

// Who gets no events hears of those of others soon, too.
TEST_F(LoadWatchTest, ASessionWithoutCallsHearsWhatOthersCallsChange) {
  serve(paced(25));
  Client watcher(stub_.get());
  watcher.hello("gw-1", true);
  watcher.send();
  Client busy(stub_.get());
  busy.hello("gw-2", true);
  busy.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  busy.send();
  ASSERT_TRUE(watcher.read_until_load([](const v1::Load& load) { return load.tokens() >= 3; }));
  const uint64_t tokens = watcher.loads.back().tokens();
  const size_t before = watcher.loads.size();
  ASSERT_TRUE(
      watcher.read_until_load([&](const v1::Load& load) { return load.tokens() >= tokens + 10; }));
  EXPECT_GE(watcher.loads.size() - before, 5u) << "not once a second";
}

TEST_F(LoadWatchTest, AGatewayHearsOfTheCallsOfOthers) {
  serve(paced(1000));
  Client ours(stub_.get());
  ours.hello("gw-1", true);
  ours.send();
  Client also_ours(stub_.get());
  also_ours.hello("gw-1", false);
  also_ours.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  also_ours.send();
  ASSERT_TRUE(ours.read_until_load([](const v1::Load& load) { return load.calls() == 1; }));
  EXPECT_EQ(ours.loads.back().calls_elsewhere(), 0u);
  EXPECT_EQ(ours.loads.back().gateways(), 1u);
  Client other(stub_.get());
  other.hello("gw-2", false);
  other.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
  other.send();
  ASSERT_TRUE(ours.read_until_load([](const v1::Load& load) { return load.calls() == 2; }));
  EXPECT_EQ(ours.loads.back().calls_elsewhere(), 1u);
  EXPECT_EQ(ours.loads.back().gateways(), 2u);
  EXPECT_EQ(ours.loads.back().running(), 2u);
}

TEST_F(LoadWatchTest, SessionsThatVanishWhileTheyWatchLeaveNothingBehind) {
  serve(paced(1000));
  for (int i = 0; i < 20; ++i) {
    Client client(stub_.get());
    client.hello("", true);
    client.start(1, chat_request(R"("max_tokens":100000,"stream":true)"));
    client.send();
    ASSERT_TRUE(client.read());
  }
  EXPECT_TRUE(await_idle());
}

}  // namespace
}  // namespace penstock::replica
