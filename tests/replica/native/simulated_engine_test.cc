#include "simulated/simulated_engine.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.h"

namespace penstock::replica::simulated {
namespace {

using replica::test::chat_request;
using replica::test::Recorded;
using replica::test::recorded_call;
using replica::test::Recorder;

class SimulatedEngineTest : public ::testing::Test {
 protected:
  SimulatedEngine& engine() {
    if (!engine_) engine_ = std::make_unique<SimulatedEngine>(settings_, inbox_);
    return *engine_;
  }
  Recorded start(const v1::CallRequest& request) {
    Recorded made = recorded_call(request);
    engine().start({&made.call, 1});
    return made;
  }
  std::vector<Inbox::Item> await_item() {
    pollfd fd{.fd = inbox_->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&fd, 1, 10'000), 1);
    return inbox_->drain();
  }

  Settings settings_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<SimulatedEngine> engine_;
};

TEST_F(SimulatedEngineTest, AShortAnswerIsOneEventAndThereAtOnce) {
  const Recorded made = start(chat_request(R"("max_tokens":8,"stream":true)"));
  EXPECT_TRUE(made.recorder->ended()) << "made by `start`, on the caller's thread";
  const auto events = made.recorder->await_end();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].has_head());
  EXPECT_EQ(events[0].chunk().events(), 11u);
  EXPECT_EQ(events[0].finished().usage().completion_tokens(), 8u);
  EXPECT_EQ(events[0].finished().finish_reasons(0), "length");
  EXPECT_EQ(engine().figures().running, 0u);
  EXPECT_EQ(engine().figures().tokens, 8u);
}

TEST_F(SimulatedEngineTest, ALongAnswerComesWhole) {
  const Recorded made = start(chat_request(R"("max_tokens":5000,"stream":true)"));
  const auto events = made.recorder->await_end();
  uint32_t count = 0;
  for (const auto& event : events) count += event.chunk().events();
  EXPECT_EQ(count, 5003u);
}

TEST_F(SimulatedEngineTest, APacedStreamTakesItsTime) {
  settings_.behaviour.tokens_per_second = 100;
  settings_.behaviour.ttft_ms = 30;
  const auto began = std::chrono::steady_clock::now();
  const Recorded made = start(chat_request(R"("max_tokens":6,"stream":true)"));
  EXPECT_FALSE(made.recorder->ended());
  const auto events = made.recorder->await_end();
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, std::chrono::milliseconds(30 + 45));
  ASSERT_FALSE(events.empty());
  const v1::Timings& timings = events.back().finished().timings();
  EXPECT_GE(timings.prefill_us(), 30'000u);
  EXPECT_GE(timings.decode_us(), 45'000u);
}

TEST_F(SimulatedEngineTest, APacedUnaryAnswerComesAtTheEnd) {
  settings_.behaviour.tokens_per_second = 200;
  const Recorded made = start(chat_request(R"("max_tokens":6)"));
  const auto events = made.recorder->await_end();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_GE(events[0].finished().timings().decode_us(), 20'000u);
  EXPECT_EQ(engine().figures().tokens, 6u);
}

TEST_F(SimulatedEngineTest, StreamsBeyondMaxRunningWaitForASlot) {
  settings_.max_running = 1;
  settings_.behaviour.tokens_per_second = 1;
  const Recorded first = start(chat_request(R"("max_tokens":100,"stream":true)"));
  const Recorded second = start(chat_request(R"("max_tokens":1,"stream":true)"));
  EXPECT_EQ(engine().figures().running, 1u);
  EXPECT_EQ(engine().figures().waiting, 1u);
  first.call->answer.close();
  engine().cancel(first.call);
  EXPECT_EQ(second.recorder->await_end().size(), 1u);
  EXPECT_EQ(engine().figures().running, 0u);
  EXPECT_EQ(engine().figures().waiting, 0u);
}

TEST_F(SimulatedEngineTest, TheLowestPriorityWaitsShortestAndEqualOnesInTheirOrder) {
  settings_.max_running = 1;
  settings_.behaviour.tokens_per_second = 1;
  const Recorded first = start(chat_request(R"("max_tokens":100,"stream":true)"));
  std::vector<Recorded> waiting;
  for (const int priority : {5, 0, 5, -1}) {
    v1::CallRequest request = chat_request(R"("max_tokens":100,"stream":true)");
    request.set_priority(priority);
    waiting.push_back(start(request));
  }
  EXPECT_EQ(engine().figures().waiting_tokens, 8u);
  Recorded running = first;
  for (const size_t next : {3, 1, 0, 2}) {
    EXPECT_FALSE(waiting[next].recorder->sse_events());
    engine().cancel(running.call);
    EXPECT_TRUE(waiting[next].recorder->await_sse_events(1)) << next;
    running = waiting[next];
  }
  EXPECT_EQ(engine().figures().waiting_tokens, 0u);
}

TEST_F(SimulatedEngineTest, AnAnswerWaitsForTheBlocksThatAllOfItTakes) {
  settings_.kv_blocks = 3;
  settings_.behaviour.tokens_per_second = 1;
  const Recorded first = start(chat_request(R"("max_tokens":30,"stream":true)"));
  const Recorded second = start(chat_request(R"("max_tokens":30,"stream":true)"));
  const Recorded huge = start(chat_request(R"("max_tokens":100,"stream":true)"));
  EXPECT_EQ(engine().figures().kv_blocks_used, 2u);
  EXPECT_EQ(engine().figures().waiting, 2u);
  engine().cancel(first.call);
  EXPECT_TRUE(second.recorder->await_sse_events(1));
  engine().cancel(second.call);
  EXPECT_TRUE(huge.recorder->await_sse_events(1)) << "alone it gets what it needs";
  engine().cancel(huge.call);
  EXPECT_EQ(engine().figures().kv_blocks_used, 0u);
}

TEST_F(SimulatedEngineTest, AWaitingCallThatIsCancelledIsForgotten) {
  settings_.max_running = 1;
  settings_.behaviour.tokens_per_second = 1;
  const Recorded first = start(chat_request(R"("max_tokens":100,"stream":true)"));
  const Recorded second = start(chat_request(R"("max_tokens":1,"stream":true)"));
  engine().cancel(second.call);
  engine().cancel(second.call);
  EXPECT_EQ(engine().figures().waiting, 0u);
  EXPECT_EQ(engine().figures().running, 1u);
}

// Holds answers back until it is told to let them go.
class Held final : public Outlet {
 public:
  bool ready(const CallPtr& /*call*/) override { return false; }
  void flush() override {}
};

TEST_F(SimulatedEngineTest, ASlowConsumerHoldsTheEngineBack) {
  auto call = std::make_shared<Call>(1, 0, 0);
  call->request = chat_request(R"("max_tokens":100000,"stream":true)");
  call->outlet = std::make_shared<Held>();
  engine().start({&call, 1});
  uint64_t produced = 0;
  for (uint64_t before = 1; before != produced;) {
    before = produced;
    produced = engine().figures().tokens;
    std::this_thread::yield();
  }
  EXPECT_LT(produced, 2000u) << "a queue holds 64 KiB";
  size_t bytes = 0;
  bool ended = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!ended && std::chrono::steady_clock::now() < deadline) {
    v1::CallEvent event;
    const auto taken = call->answer.take(&event, TokenQueue::kCapacityBytes);
    bytes += taken.bytes;
    ended = taken.ended;
    if (taken.room) engine().room({&call, 1});
  }
  EXPECT_TRUE(ended);
  EXPECT_GT(bytes, 100'000u * 100);
}

TEST_F(SimulatedEngineTest, DiesAfterSoManyTokensOfACall) {
  settings_.behaviour.die_after_tokens = 3;
  const Recorded made = start(chat_request(R"("max_tokens":8,"stream":true)"));
  const auto items = await_item();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, Inbox::Kind::kDied);
  EXPECT_FALSE(made.recorder->ended());
  EXPECT_TRUE(made.recorder->await_sse_events(4)) << "the role and three tokens were made";
  const Recorded late = start(chat_request(R"("max_tokens":1)"));
  EXPECT_FALSE(late.recorder->ended());
}

TEST_F(SimulatedEngineTest, AHangStopsAllCallsAndAskedOnes) {
  settings_.behaviour.hang_after_tokens = 2;
  start(chat_request(R"("max_tokens":8,"stream":true)"));
  const Recorded other = start(chat_request(R"("max_tokens":1,"stream":true)"));
  EXPECT_FALSE(other.recorder->ended());
  engine().ask(1, chat_request(R"("max_tokens":1)"), true);
  EXPECT_TRUE(inbox_->drain().empty());
  engine().cancel_asked(1);
}

TEST_F(SimulatedEngineTest, AskedCallsTakeNoSlotAndSufferNoFaults) {
  settings_.max_running = 1;
  settings_.refuse_share = 1;
  settings_.behaviour.die_after_tokens = 1;
  engine().ask(42, chat_request(R"("max_tokens":5)"), true);
  const auto items = await_item();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].kind, Inbox::Kind::kEvent);
  EXPECT_EQ(items[0].key, 42u);
  v1::CallEvent event;
  ASSERT_TRUE(event.ParseFromString(items[0].payload));
  EXPECT_EQ(event.finished().usage().completion_tokens(), 5u);
  EXPECT_EQ(engine().figures().tokens, 0u);
}

TEST_F(SimulatedEngineTest, RefusesItsShareAsRetryable) {
  settings_.refuse_share = 1;
  const auto events = start(chat_request("")).recorder->await_end();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].failed().error().status(), 503u);
  EXPECT_EQ(events[0].failed().error().code(), "queue_full");
  EXPECT_EQ(events[0].failed().error().retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
}

v1::CallRequest adapter_request(const std::string& digest, const std::string& fields) {
  v1::CallRequest request = chat_request(fields);
  request.set_adapter("pirate@1");
  request.set_adapter_digest(digest);
  return request;
}

TEST_F(SimulatedEngineTest, KnowsItsAdapters) {
  const v1::CallRequest request = adapter_request("", R"("max_tokens":1)");
  EXPECT_EQ(start(request).recorder->await_end().at(0).failed().error().status(), 404u);
  engine().add_adapter({"pirate@1", "one"});
  EXPECT_EQ(start(request).recorder->await_end().at(0).finished().adapter(), "pirate@1");
  EXPECT_TRUE(engine().remove_adapter("pirate@1"));
  EXPECT_EQ(start(request).recorder->await_end().at(0).failed().error().status(), 404u);
}

TEST_F(SimulatedEngineTest, ACallWaitsForTheAdapterWhoseDigestItTells) {
  const Recorded first = start(adapter_request("one", R"("max_tokens":3)"));
  const Recorded second = start(adapter_request("one", R"("max_tokens":3)"));
  const auto items = await_item();
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items[0].kind, Inbox::Kind::kWanted);
  v1::CallRequest wanted;
  ASSERT_TRUE(wanted.ParseFromString(items[0].payload));
  EXPECT_EQ(wanted.adapter(), "pirate@1");
  EXPECT_EQ(wanted.adapter_digest(), "one");
  EXPECT_FALSE(first.recorder->ended());
  engine().add_adapter({"pirate@1", "one"});
  EXPECT_EQ(first.recorder->await_end().at(0).finished().adapter(), "pirate@1");
  EXPECT_EQ(second.recorder->body(), first.recorder->body());
}

TEST_F(SimulatedEngineTest, OtherBytesMakeOtherWords) {
  engine().add_adapter({"pirate@1", "one"});
  const Recorded one = start(adapter_request("one", R"("max_tokens":9)"));
  EXPECT_TRUE(one.recorder->ended());
  EXPECT_TRUE(engine().remove_adapter("pirate@1"));
  engine().add_adapter({"pirate@1", "two"});
  const Recorded two = start(adapter_request("", R"("max_tokens":9)"));
  EXPECT_TRUE(two.recorder->ended());
  EXPECT_NE(one.recorder->body(), two.recorder->body());
}

TEST_F(SimulatedEngineTest, AnAdapterWithOtherBytesIsRefused) {
  engine().add_adapter({"pirate@1", "one"});
  const auto events = start(adapter_request("two", "")).recorder->await_end();
  EXPECT_EQ(events.at(0).failed().error().code(), "adapter_mismatch");
  EXPECT_EQ(events.at(0).failed().error().retry(), v1::RETRY_BEFORE_FIRST_TOKEN);
}

TEST_F(SimulatedEngineTest, ABadRequestIsRefusedBeforeItsAdapterIsLoaded) {
  const auto events = start(adapter_request("one", R"("max_tokens":-1)")).recorder->await_end();
  EXPECT_EQ(events.at(0).failed().error().status(), 400u);
  EXPECT_TRUE(inbox_->drain().empty());
}

TEST_F(SimulatedEngineTest, CallsWhoseAdapterCannotBeLoadedFailWithTheReason) {
  const Recorded made = start(adapter_request("one", ""));
  v1::ErrorDetail error;
  error.set_code("adapter_load_failed");
  engine().fail_parked({"pirate@1", "two"}, error, true);
  EXPECT_FALSE(made.recorder->ended()) << "that was another's";
  engine().fail_parked({"pirate@1", "one"}, error, true);
  EXPECT_EQ(made.recorder->await_end().at(0).failed().error().code(), "adapter_load_failed");
}

TEST_F(SimulatedEngineTest, CallsThatWaitForRoomOutliveThoseThatDoNot) {
  const Recorded now = start(adapter_request("one", ""));
  v1::CallRequest request = adapter_request("one", R"("max_tokens":2)");
  request.set_adapter_wait_ms(1000);
  const Recorded later = start(request);
  EXPECT_EQ(inbox_->drain().size(), 2u) << "asked for room now, and for room later";
  engine().fail_parked({"pirate@1", "one"}, {}, false);
  EXPECT_TRUE(now.recorder->await_end().at(0).has_failed());
  engine().add_adapter({"pirate@1", "one"});
  EXPECT_TRUE(later.recorder->await_end().at(0).has_finished());
}

TEST_F(SimulatedEngineTest, ACallThatWaitsForItsAdapterCanBeCancelled) {
  const Recorded made = start(adapter_request("one", ""));
  engine().cancel(made.call);
  EXPECT_TRUE(made.recorder->await_end().at(0).has_cancelled());
  engine().add_adapter({"pirate@1", "one"});
  EXPECT_EQ(engine().figures().running, 0u);
}

TEST_F(SimulatedEngineTest, AnAdapterInUseStaysAndItsEndIsTold) {
  settings_.behaviour.tokens_per_second = 1;
  engine().add_adapter({"pirate@1", "one"});
  const Recorded made = start(adapter_request("one", R"("max_tokens":100,"stream":true)"));
  EXPECT_FALSE(engine().remove_adapter("pirate@1"));
  EXPECT_EQ(engine().adapter_uses().at(0).calls, 1u);
  engine().tell_when_idle({"pirate@1"});
  EXPECT_TRUE(inbox_->drain().empty());
  engine().cancel(made.call);
  EXPECT_EQ(await_item().at(0).kind, Inbox::Kind::kIdle);
  EXPECT_TRUE(engine().remove_adapter("pirate@1"));
}

TEST_F(SimulatedEngineTest, AnAdapterThatIsIdleAlreadyIsToldAtOnce) {
  engine().add_adapter({"pirate@1", "one"});
  engine().tell_when_idle({"pirate@1"});
  EXPECT_EQ(await_item().at(0).kind, Inbox::Kind::kIdle);
}

TEST_F(SimulatedEngineTest, ManyThreadsStartAndCancelWithoutLosingCount) {
  settings_.behaviour.tokens_per_second = 2000;
  engine();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        const Recorded made = start(chat_request(R"("max_tokens":20,"stream":true)"));
        if ((i + thread) % 2 == 0) {
          made.call->answer.close();
          engine().cancel(made.call);
        } else {
          EXPECT_FALSE(made.recorder->await_end().empty());
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(engine().figures().running, 0u);
  EXPECT_EQ(engine().figures().waiting, 0u);
}

TEST_F(SimulatedEngineTest, NoCallIsLostWhileItsAdapterComesAndGoes) {
  settings_.behaviour.tokens_per_second = 5000;
  engine();
  std::atomic<bool> over{false};
  std::jthread loader([&] {
    while (!over) {
      for (const Inbox::Item& item : inbox_->drain()) {
        if (item.kind == Inbox::Kind::kWanted) engine().add_adapter({"pirate@1", "one"});
      }
      if (engine().remove_adapter("pirate@1")) {
        engine().fail_parked({"pirate@1", "two"}, {}, true);
      } else {
        engine().tell_when_idle({"pirate@1"});
      }
      std::this_thread::yield();
    }
  });
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 100; ++i) {
        const Recorded made = start(adapter_request("one", R"("max_tokens":3,"stream":true)"));
        if ((i + caller) % 3 == 0) engine().cancel(made.call);
        const auto events = made.recorder->await_end();
        ASSERT_FALSE(events.empty());
        EXPECT_FALSE(events.back().has_failed()) << events.back().failed().error().message();
      }
    });
  }
  callers.clear();
  over = true;
  loader.join();
  EXPECT_TRUE(engine().remove_adapter("pirate@1"));
  EXPECT_EQ(engine().figures().running, 0u);
}

}  // namespace
}  // namespace penstock::replica::simulated
