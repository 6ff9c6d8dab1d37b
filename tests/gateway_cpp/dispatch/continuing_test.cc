// Places for answers that go on at another replica: where, in which order, and what waits for them.
#include <array>
#include <map>

#include "dispatch/shadow_place.h"
#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ContinuingTest : public DispatcherTest {
 protected:
  ContinuingTest() { limits_.max_ongoing = 1; }

  // Ready ones, by id and config_hash; "" : it tells none.
  void have(const std::map<std::string, std::string>& replicas) {
    std::vector<std::string> ids;
    for (const auto& [id, hash] : replicas) ids.push_back(id);
    announce(ids);
    for (const auto& [id, hash] : replicas) report(id, {.config_hash = hash, .resumes = true});
  }
  void report(const std::string& id, const routing::LoadReport& load) {
    for (const auto& replica : here().replicas()) {
      if (replica->id().value == id) here().report(*replica, load);
    }
  }
  void lose(const std::string& id) {
    for (const auto& replica : here().replicas()) {
      if (replica->id().value == id) here().note_failure(*replica, routing::Failure::kLost);
    }
  }
  Dispatcher& here() { return routes_.of("mini"); }
  // Takes the place that the only free replica has, and says what that one's answers are of.
  Place begin(Asking& asking) {
    EXPECT_FALSE(admit(asking).refusal);
    return asking.turn.take();
  }
  bool go_on(Asking& asking, std::uint32_t config, std::vector<routing::ReplicaId> excluded) {
    asking.ask.continues = config;
    return here().again(asking.turn, asking.ask, std::move(excluded),
                        [&asking] { return asking.waker; });
  }
  static std::string where(Asking& asking) {
    const auto place = asking.turn.take();
    return place ? place.replica()->id().value : "";
  }

  Asking broken_;
};

TEST_F(ContinuingTest, ItGoesToNoReplicaOfAnotherConfigNorToOneThatResumesNot) {
  have({{"r1", "a"}});
  const std::uint32_t config = begin(broken_).config();
  have({{"r1", "a"}, {"r2", "b"}, {"r3", ""}, {"r4", "a"}});
  report("r4", {.config_hash = "a", .resumes = false});
  EXPECT_TRUE(go_on(broken_, config, {{"r1"}}));
  EXPECT_FALSE(broken_.turn.has_place());
  EXPECT_FALSE(here().is_ready_to_continue(config, std::vector<routing::ReplicaId>{{"r1"}}));
  EXPECT_TRUE(here().is_ready_to_continue(config, {}));
  report("r4", {.config_hash = "a", .resumes = true});
  EXPECT_EQ(where(broken_), "r4");
}

TEST_F(ContinuingTest, ItIsToldOfEachReplicaThatItCouldGoOnAtAndOfTheLastThatGoes) {
  have({{"r1", "a"}});
  const std::uint32_t config = begin(broken_).config();
  have({{"r1", "a"}, {"r2", "b"}});
  EXPECT_TRUE(go_on(broken_, config, {{"r1"}}));
  EXPECT_EQ(broken_.waker->woken, 0);
  // It is full: who waits for it waits longer than for none.
  report("r2", {.kv_usage = 0.99, .config_hash = "a", .resumes = true});
  EXPECT_GT(broken_.waker->woken, 0);
  EXPECT_TRUE(here().is_ready_to_continue(config, std::vector<routing::ReplicaId>{{"r1"}}));
  const int before = broken_.waker->woken;
  lose("r2");
  EXPECT_GT(broken_.waker->woken, before);
  EXPECT_FALSE(here().is_ready_to_continue(config, std::vector<routing::ReplicaId>{{"r1"}}));
  EXPECT_FALSE(broken_.turn.has_place());
}

TEST_F(ContinuingTest, NeitherShareNorSessionKeepItFromAnEqualReplicaAndItsSessionStays) {
  auto deployment = routing::deployment("mini", {}, limits_);
  deployment.keeps_sessions = true;
  routing::RouteSnapshot snapshot{.version = 1, .deployments = {deployment}, .replicas = {}};
  for (const std::string id : {"r1", "r2"}) {
    snapshot.replicas.push_back(routing::replica(id, "mini"));
    snapshot.replicas.back().template_digest = id;  // each is a revision of its own
  }
  routes_.replace(snapshot);
  for (const std::string id : {"r1", "r2"}) report(id, {.config_hash = "a", .resumes = true});
  broken_.ask.session = 7;
  const Place place = begin(broken_);
  const routing::ReplicaId first = place.replica()->id();
  EXPECT_TRUE(go_on(broken_, place.config(), {first}));
  EXPECT_NE(where(broken_), first.value);
  Asking next;  // its session's home is full, and it waits there
  next.ask.session = 7;
  EXPECT_FALSE(admit(next).refusal);
  EXPECT_FALSE(next.turn.has_place());
}

TEST_F(ContinuingTest, BrokenOnesGoFirstThenThoseThatBeganNothingThenThoseThatRunOnThenTheQueue) {
  have({{"r1", "a"}, {"r2", "a"}, {"r3", "a"}});
  std::array<Asking, 3> holders;
  std::map<std::string, Place> places;
  for (auto& holder : holders) {
    Place place = begin(holder);
    places[place.replica()->id().value] = std::move(place);
  }
  const std::uint32_t config = places["r1"].config();
  Asking newcomer;
  EXPECT_FALSE(admit(newcomer).refusal);
  Asking moving;
  moving.ask.runs_on = true;
  EXPECT_TRUE(go_on(moving, config, {{"r1"}}));
  Asking retry;
  EXPECT_TRUE(go_on(retry, 0, {{"r1"}}));
  EXPECT_TRUE(go_on(broken_, config, {{"r1"}}));
  places["r2"].release();
  EXPECT_EQ(where(broken_), "r2");  // and gives it back
  EXPECT_EQ(where(retry), "r2");
  EXPECT_EQ(where(moving), "r2");
  EXPECT_EQ(where(newcomer), "r2");
}

TEST_F(ContinuingTest, ThoseThatRunOnComeAFewAtATimeAndDoNotQueue) {
  limits_.max_ongoing = 100;
  limits_.max_queued = 1;
  have({{"r1", "a"}});
  const std::uint32_t config = begin(broken_).config();
  have({{"r1", "a"}, {"r2", "a"}});
  report("r2", {.gateways = 1, .config_hash = "a", .resumes = true});
  std::array<Asking, 10> moving;
  std::vector<Place> places;
  const auto taken = [&] {
    for (auto& one : moving) {
      if (one.turn.has_place()) places.push_back(one.turn.take());
    }
    return places.size();
  };
  for (auto& one : moving) {
    one.ask.runs_on = true;
    EXPECT_TRUE(go_on(one, config, {{"r1"}}));
  }
  EXPECT_EQ(taken(), 4u);
  Asking newcomer;  // there is room, and nobody waits for an answer
  EXPECT_FALSE(admit(newcomer).refusal);
  EXPECT_TRUE(newcomer.turn.has_place());
  report("r2", {.running = 4, .calls = 5, .gateways = 1, .config_hash = "a", .resumes = true});
  EXPECT_EQ(taken(), 8u);
}

TEST_F(ContinuingTest, ThoseThatNobodyCanTakeAreInNobodysWay) {
  limits_.max_queued = 1;
  have({{"r1", "a"}});
  const std::uint32_t config = begin(broken_).config();
  have({{"r1", "b"}});
  Asking holds;
  const Place place = begin(holds);
  EXPECT_TRUE(go_on(broken_, config, {{"gone"}}));
  EXPECT_EQ(here().standing().queued, 0u);
  Asking next;
  EXPECT_FALSE(admit(next).refusal);
}

TEST_F(ContinuingTest, ANewcomerIsToldTheWorkOfThoseThatGoOnBeforeIt) {
  have({{"r1", "a"}});
  Asking first;
  Place place = begin(first);
  Asking waits;
  const auto before = admit(waits).turn.estimated_wait;
  broken_.ask.delivered = 4'000;
  EXPECT_TRUE(go_on(broken_, place.config(), {{"other"}}));
  Asking next;
  const auto after = admit(next).turn.estimated_wait;
  EXPECT_GT(after, before + (before - before / 2));
  broken_.turn.leave();
  Asking last;
  EXPECT_LT(admit(last).turn.estimated_wait, after + before);
}

TEST_F(ContinuingTest, WhatWasDeliveredIsReadAndNotMadeAgain) {
  broken_.ask.estimate = {.prompt = 100, .completion = 50};
  const std::uint64_t whole = broken_.ask.work();
  broken_.ask.delivered = 20;
  EXPECT_EQ(broken_.ask.work(), whole + 20 - 4 * 20);
  broken_.ask.delivered = 500;
  EXPECT_EQ(broken_.ask.work(), 600u);
}

TEST_F(ContinuingTest, ItWaitsForOneThatNothingSpeaksAgainst) {
  have({{"r1", "a"}, {"r2", "a"}});
  Place place = begin(broken_);
  const routing::ReplicaId first = place.replica()->id();
  lose("r1");
  lose("r2");
  EXPECT_TRUE(go_on(broken_, place.config(), {first}));
  EXPECT_FALSE(broken_.turn.has_place());
  Asking newcomer;  // somebody has to find out
  EXPECT_FALSE(admit(newcomer).refusal);
  EXPECT_TRUE(newcomer.turn.has_place());
}

TEST_F(ContinuingTest, NoMoreAreSentBetweenTwoReportsThanAnEngineHasMemoryFor) {
  limits_.max_ongoing = 100;
  have({{"r1", "a"}});
  report("r1", {.running = 10, .kv_usage = 0.5, .config_hash = "a", .resumes = true});
  const std::uint32_t config = begin(broken_).config();
  std::array<Asking, 20> all;
  std::vector<Place> places;
  for (auto& one : all) {
    EXPECT_TRUE(go_on(one, config, {}));
    if (one.turn.has_place()) places.push_back(one.turn.take());
  }
  EXPECT_EQ(places.size(), 9u) << "each is taken to need a twentieth of the memory";
  Asking newcomer;
  EXPECT_FALSE(admit(newcomer).refusal);
  EXPECT_FALSE(newcomer.turn.has_place()) << "it has passed those that wait";
  // They needed less.
  report("r1", {.running = 19,
                .kv_usage = 0.7,
                .calls = 9,
                .gateways = 1,
                .config_hash = "a",
                .resumes = true});
  for (auto& one : all) {
    if (one.turn.has_place()) places.push_back(one.turn.take());
  }
  EXPECT_EQ(places.size(), 16u);
}

TEST_F(ContinuingTest, AShadowGivesItsPlaceUpForItOnlyWhereThatHelps) {
  have({{"r1", "a"}});
  Place place = begin(broken_);
  have({{"r1", "a"}, {"r2", "b"}});
  ShadowPlace shadow;
  const auto waker = std::make_shared<CountingWaker>();
  ASSERT_TRUE(here().place_shadow(shadow, {}, {}, waker));
  EXPECT_TRUE(go_on(broken_, place.config(), {{"r1"}}));
  EXPECT_FALSE(shadow.was_given_up());
  broken_.turn.leave();
  report("r2", {.config_hash = "a", .resumes = true});
  EXPECT_TRUE(go_on(broken_, place.config(), {{"r1"}}));
  EXPECT_TRUE(shadow.was_given_up());
  EXPECT_EQ(where(broken_), "r2");
}

TEST_F(ContinuingTest, ADeploymentThatLeavesTellsThem) {
  have({{"r1", "a"}});
  Place place = begin(broken_);
  EXPECT_TRUE(go_on(broken_, place.config(), {{"r1"}}));
  here().close();
  EXPECT_EQ(broken_.waker->woken, 1);
  EXPECT_TRUE(broken_.turn.has_place());
  EXPECT_FALSE(broken_.turn.take());
}

}  // namespace
}  // namespace penstock::dispatch
