#include "dispatch/dispatcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;

TEST_F(DispatcherTest, GivesAPlaceAtOnceWhereThereIsRoom) {
  Asking asking;
  const Admission outcome = admit(asking);
  EXPECT_FALSE(outcome.refusal);
  EXPECT_EQ(outcome.turn.estimated_wait, milliseconds(0));
  ASSERT_TRUE(asking.turn.has_place());
  Place place = asking.turn.take();
  EXPECT_EQ(place.replica()->id().value, "r1");
  EXPECT_EQ(in_flight(), 1U);
  place.release();
  place.release();
  EXPECT_EQ(in_flight(), 0U) << "given back exactly once";
}

TEST_F(DispatcherTest, LetsTwoRunAndTwoWaitAndRefusesTheOthers) {
  limit(2, 2);
  std::vector<std::unique_ptr<Asking>> all;
  int refused = 0;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<Asking>());
    const auto outcome = admit(*all.back());
    if (outcome.refusal) {
      ++refused;
      EXPECT_EQ(outcome.refusal->reason, admission::DropReason::kQueueFull);
      EXPECT_GE(outcome.refusal->retry_after, milliseconds(1000));
    }
  }
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(all[0]->turn.has_place() && all[1]->turn.has_place());
  EXPECT_FALSE(all[2]->turn.has_place() || all[3]->turn.has_place());
  EXPECT_EQ(routes_.of("mini").standing().queued, 2U);
}

TEST_F(DispatcherTest, LeavesRoomForOneThatComesBackWhenItWasTold) {
  limit(1, 2);
  Asking runs;
  Asking waits;
  Asking waits_longer;
  Asking sent_away;
  sent_away.ask.body = "seven";
  admit(runs);
  admit(waits);
  admit(waits_longer);
  const auto told = admit(sent_away).refusal;
  ASSERT_TRUE(told);
  clock_.advance(told->retry_after);
  runs.turn.leave();
  ASSERT_TRUE(waits.turn.has_place());
  Asking newcomer;
  newcomer.ask.body = "eight";
  EXPECT_TRUE(admit(newcomer).refusal) << "the other place in the queue is promised";
  EXPECT_FALSE(admit(sent_away).refusal);
}

TEST_F(DispatcherTest, GivesATimeOfItsOwnToEachThatWaitedInVainOrFoundNoMemory) {
  limit(1, 2);
  Asking runs;
  admit(runs);
  Asking first;
  Asking second;
  first.ask.body = "one";
  second.ask.body = "two";
  admit(first);
  admit(second);
  std::vector<milliseconds> told;
  for (Asking* asking : {&first, &second}) {
    asking->turn.leave();
    const auto over = routes_.of("mini").deadline_over(asking->ask, milliseconds(30'000));
    EXPECT_EQ(over.reason, admission::DropReason::kQueueDeadline);
    told.push_back(over.retry_after);
  }
  EXPECT_LT(told[0], told[1]);
  limits_.kv_pressure = 0.9;
  announce({"r1"});
  routes_.of("mini").report(routes_.replica("mini", 0), {.serving = true, .kv_usage = 0.95F});
  for (const char* body : {"three", "four"}) {
    Asking asking;
    asking.ask.body = body;
    const auto refusal = admit(asking).refusal;
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, admission::DropReason::kMemoryPressure);
    EXPECT_GT(refusal->retry_after, told.back());
    told.push_back(refusal->retry_after);
  }
}

TEST_F(DispatcherTest, HandsAPlaceThatIsGivenBackToWhoWaitsLongestAndWakesIt) {
  limit(1);
  Asking first;
  Asking second;
  Asking third;
  admit(first);
  admit(second);
  admit(third);
  Place place = first.turn.take();
  place.release();
  EXPECT_TRUE(second.turn.has_place());
  EXPECT_EQ(second.waker->woken, 1);
  EXPECT_FALSE(third.turn.has_place());
  EXPECT_EQ(third.waker->woken, 0);
}

TEST_F(DispatcherTest, LetsANewcomerPassNobody) {
  limit(1);
  Asking first;
  Asking second;
  Asking third;
  admit(first);
  admit(second);
  first.turn.leave();
  admit(third);
  EXPECT_TRUE(second.turn.has_place());
  EXPECT_FALSE(third.turn.has_place());
}

TEST_F(DispatcherTest, FreesTheTurnOfOneThatLeavesAtOnce) {
  limit(1, 1);
  Asking first;
  auto second = std::make_unique<Asking>();
  Asking third;
  admit(first);
  admit(*second);
  second.reset();
  EXPECT_EQ(routes_.of("mini").standing().queued, 0U);
  EXPECT_FALSE(admit(third).refusal);
}

TEST_F(DispatcherTest, GivesBackThePlaceOfOneThatLeavesBeforeItHeardOfIt) {
  limit(1);
  Asking first;
  auto second = std::make_unique<Asking>();
  Asking third;
  admit(first);
  admit(*second);
  admit(third);
  first.turn.leave();
  ASSERT_TRUE(second->turn.has_place());
  second.reset();
  EXPECT_TRUE(third.turn.has_place());
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(DispatcherTest, LetsWhoHasPriorityGoFirst) {
  limit(1);
  Asking running;
  Asking normal("a");
  Asking high("b", base::Priority::kHigh);
  admit(running);
  admit(normal);
  admit(high);
  running.turn.leave();
  EXPECT_TRUE(high.turn.has_place());
  EXPECT_FALSE(normal.turn.has_place());
}

TEST_F(DispatcherTest, WakesWhoWaitsWhenAReplicaComes) {
  limit(1);
  Asking first;
  Asking second;
  admit(first);
  admit(second);
  announce({"r1", "r2"});
  EXPECT_TRUE(second.turn.has_place());
  EXPECT_EQ(second.turn.take().replica()->id().value, "r2");
}

TEST_F(DispatcherTest, WakesWhoWaitsWhenTheLastReplicaGoesAndLeavesItItsTurn) {
  limit(1);
  Asking first;
  Asking second;
  admit(first);
  admit(second);
  announce({});
  EXPECT_EQ(second.waker->woken, 1);
  EXPECT_FALSE(second.turn.has_place()) << "it may wait for another";
  announce({"r2"});
  EXPECT_TRUE(second.turn.has_place());
}

TEST_F(DispatcherTest, WakesWhoWaitsWhenALimitIsRaised) {
  limit(1);
  Asking first;
  Asking second;
  admit(first);
  admit(second);
  limit(2);
  EXPECT_TRUE(second.turn.has_place());
}

TEST_F(DispatcherTest, WakesWhoWaitsWhenAReplicasMemoryIsFreeAgain) {
  auto& mini = routes_.of("mini");
  announce({"r1", "r2"});
  limits_.max_ongoing = 1;
  announce({"r1", "r2"});
  Asking first;
  Asking second;
  mini.report(routes_.replica("mini", 0), {.kv_usage = 0.99F});
  admit(first);
  EXPECT_EQ(first.turn.take().replica()->id().value, "r2") << "and is over at once";
  mini.report(routes_.replica("mini", 1), {.kv_usage = 0.99F});
  EXPECT_EQ(admit(second).refusal->reason, admission::DropReason::kMemoryPressure);
  mini.report(routes_.replica("mini", 1), {.kv_usage = 0.1F});
  EXPECT_FALSE(admit(second).refusal);
}

TEST_F(DispatcherTest, SendsOneThatFailedToAnotherReplicaBeforeAllThatWait) {
  announce({"r1", "r2"});
  limits_.max_ongoing = 1;
  announce({"r1", "r2"});
  auto& mini = routes_.of("mini");
  Asking failing;
  Asking running;
  Asking waiting;
  admit(failing);
  admit(running);
  admit(waiting);
  const auto failed = failing.turn.take().replica()->id();  // its place goes to who waits
  EXPECT_TRUE(waiting.turn.has_place());
  ASSERT_TRUE(mini.again(failing.turn, failing.ask, {failed}, [&] { return failing.waker; }));
  EXPECT_FALSE(failing.turn.has_place());
  running.turn.leave();
  EXPECT_TRUE(failing.turn.has_place());
  EXPECT_NE(failing.turn.take().replica()->id(), failed);
}

TEST_F(DispatcherTest, LetsNobodyWaitBehindOneThatTheFreeReplicasAreOfNoUseTo) {
  announce({"r1", "r2"});
  limits_.max_ongoing = 1;
  announce({"r1", "r2"});
  Asking failing;
  Asking running;
  Asking newcomer;
  admit(failing);
  admit(running);
  const auto failed = failing.turn.take().replica()->id();
  ASSERT_TRUE(
      routes_.of("mini").again(failing.turn, failing.ask, {failed}, [&] { return failing.waker; }));
  EXPECT_FALSE(failing.turn.has_place());
  admit(newcomer);
  EXPECT_TRUE(newcomer.turn.has_place());
}

TEST_F(DispatcherTest, DoesNotLetOneWaitForReplicasThatItHasTried) {
  Asking failing;
  admit(failing);
  failing.turn.leave();
  EXPECT_FALSE(
      routes_.of("mini").again(failing.turn, failing.ask, {{"r1"}}, [&] { return failing.waker; }));
}

TEST_F(DispatcherTest, RefusesWhereNoReplicaIsReady) {
  announce({});
  Asking asking;
  EXPECT_EQ(admit(asking).refusal->reason, admission::DropReason::kNoReadyReplica);
}

TEST_F(DispatcherTest, TellsHowLongItWillTake) {
  limit(1);
  for (int i = 0; i < 120; ++i) {
    Asking asking;
    admit(asking);
    Place place = asking.turn.take();
    clock_.advance(std::chrono::seconds(1));
    place.release();
  }
  Asking running;
  Asking waiting;
  admit(running);
  const auto outcome = admit(waiting);
  EXPECT_NEAR(static_cast<double>(outcome.turn.estimated_wait.count()), 1000, 300);
}

// Threads that ask, wait, hold and leave at random: no place is lost, and none is given twice.
TEST_F(DispatcherTest, KeepsItsCountsWhateverThreadsDo) {
  limit(3, 1000);
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        Asking asking(std::to_string(random() % 3));
        admit(asking);
        if (random() % 4 == 0) continue;  // leaves, place or not
        while (!asking.turn.has_place()) std::this_thread::yield();
        const Place place = asking.turn.take();
        const int now = ++held;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        --held;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_EQ(in_flight(), 0U);
  EXPECT_EQ(routes_.of("mini").standing().queued, 0U);
}

TEST(Dispatchers, KeepWhatIsKnownOfADeploymentWhileItsUidStays) {
  test::FixedClock clock;
  BelievedRoutes routes(clock);
  auto deployment = routing::deployment("mini");
  deployment.uid = "one";
  const auto announce = [&] {
    auto replica = routing::replica("r1", "mini");
    replica.deployment_uid = deployment.uid;
    routes.replace({.version = 1, .deployments = {deployment}, .replicas = {replica}});
  };
  announce();
  const auto first = routes.dispatch().of(deployment);
  announce();
  EXPECT_EQ(routes.dispatch().of(deployment), first);
  deployment.uid = "two";
  announce();
  EXPECT_NE(routes.dispatch().of(deployment), first) << "a namesake";
}

TEST(Dispatchers, AreFoundByWhateverRoutesAreInForceWhileANameIsMadeAnew) {
  test::FixedClock clock;
  Dispatchers dispatchers(clock, {}, 1);
  DispatchReader reader(dispatchers);
  auto before = routing::deployment("mini");
  before.uid = "one";
  auto after = before;
  after.uid = "two";
  dispatchers.follow({.version = 1, .deployments = {before}, .replicas = {}});
  dispatchers.close_left();
  const auto first = reader.of(before);
  dispatchers.follow({.version = 2, .deployments = {after}, .replicas = {}});
  EXPECT_EQ(reader.of(before), first) << "the routes still name it";
  EXPECT_NE(reader.of(after), nullptr) << "the routes may name it by now";
  dispatchers.close_left();
  EXPECT_EQ(reader.of(before), nullptr);
  EXPECT_NE(reader.of(after), nullptr);
}

TEST(Dispatchers, LeaveOutAReplicaOfANamesake) {
  test::FixedClock clock;
  BelievedRoutes routes(clock);
  auto deployment = routing::deployment("mini");
  deployment.uid = "new";
  auto old = routing::replica("r1", "mini");
  old.deployment_uid = "old";
  auto ours = routing::replica("r2", "mini");
  ours.deployment_uid = "new";
  routes.replace({.version = 1, .deployments = {deployment}, .replicas = {old, ours}});
  const auto replicas = routes.of("new").replicas();
  ASSERT_EQ(replicas.size(), 1U);
  EXPECT_EQ(replicas[0]->id().value, "r2");
}

}  // namespace
}  // namespace penstock::dispatch
