// How long a request waits for a place at its session's revision.
#include <array>

#include "dispatch/shadow_place.h"
#include "dispatcher_fixture.h"

namespace penstock::dispatch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RevisionWaitTest : public DispatcherTest {
 protected:
  RevisionWaitTest() {
    limits_.max_ongoing = 1;
    limits_.wait_budget = seconds(4);
    announce_revisions({{"r1", "old"}});
    ask(began_);
    began_.turn.take();  // and its place is given back
    announce_revisions({{"r1", "old"}, {"r2", "new"}});
    ask(holds_);  // another one that is known there: the place is taken
  }

  void announce_revisions(const std::vector<std::pair<std::string, std::string>>& replicas) {
    auto deployment = routing::deployment("mini", {}, limits_);
    deployment.keeps_sessions = true;
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {deployment}, .replicas = {}};
    for (const auto& [id, digest] : replicas) {
      snapshot.replicas.push_back(routing::replica(id, "mini"));
      snapshot.replicas.back().template_digest = digest;
    }
    routes_.replace(snapshot);
  }
  void ask(Asking& asking) {
    asking.ask.session = 7;
    ASSERT_FALSE(admit(asking).refusal);
  }
  static std::string where(Asking& asking) {
    const auto place = asking.turn.take();
    return place ? place.replica()->id().value : "";
  }

  Asking began_;
  Asking holds_;
};

TEST_F(RevisionWaitTest, ItWaitsThoughAnotherReplicaHasRoomAndHasThePlaceThatComes) {
  Asking next;
  ask(next);
  EXPECT_FALSE(next.turn.has_place());
  { const auto given_back = holds_.turn.take(); }
  EXPECT_EQ(next.waker->woken, 1);
  ASSERT_TRUE(next.turn.has_place());
  EXPECT_EQ(where(next), "r1");
}

TEST_F(RevisionWaitTest, AShadowGivesItsPlaceUpForIt) {
  { const auto given_back = holds_.turn.take(); }
  ShadowPlace shadow;
  const auto waker = std::make_shared<CountingWaker>();
  const std::vector<routing::ReplicaId> not_there{{"r2"}};
  ASSERT_TRUE(routes_.of("mini").place_shadow(shadow, {}, not_there, waker));
  Asking next;
  ask(next);
  ASSERT_TRUE(next.turn.has_place());
  EXPECT_EQ(where(next), "r1");
  EXPECT_EQ(waker->woken, 1);
}

TEST_F(RevisionWaitTest, OthersPassIt) {
  Asking next;
  ask(next);
  Asking other;
  ASSERT_FALSE(admit(other).refusal);  // of no session
  EXPECT_EQ(where(other), "r2");
}

TEST_F(RevisionWaitTest, ADozenOfItsKindBeforeThemKeepNoRoomFromOthersThatWait) {
  Asking holds_other;
  ASSERT_FALSE(admit(holds_other).refusal);
  std::array<Asking, 12> kept;
  for (Asking& one : kept) ask(one);
  Asking other;
  ASSERT_FALSE(admit(other).refusal);
  EXPECT_FALSE(other.turn.has_place());
  { const auto given_back = holds_other.turn.take(); }
  ASSERT_TRUE(other.turn.has_place());
  EXPECT_EQ(where(other), "r2");
}

TEST_F(RevisionWaitTest, ItGoesElsewhereAfterTheWaitBudget) {
  Asking next;
  ask(next);
  clock_.advance(milliseconds(3'999));
  routes_.advance();
  EXPECT_FALSE(next.turn.has_place());
  clock_.advance(milliseconds(1));
  routes_.advance();
  ASSERT_TRUE(next.turn.has_place());
  EXPECT_EQ(where(next), "r2");
}

TEST_F(RevisionWaitTest, ItGoesElsewhereAtOnceWhereNobodyMayWait) {
  limits_.max_queued = 0;
  announce_revisions({{"r1", "old"}, {"r2", "new"}});
  Asking next;
  ask(next);
  ASSERT_TRUE(next.turn.has_place());
  EXPECT_EQ(where(next), "r2");
}

TEST_F(RevisionWaitTest, ItGoesElsewhereWhenItsRevisionIsGone) {
  Asking next;
  ask(next);
  announce_revisions({{"r2", "new"}});
  EXPECT_EQ(next.waker->woken, 1);
  ASSERT_TRUE(next.turn.has_place());
  EXPECT_EQ(where(next), "r2");
}

TEST_F(RevisionWaitTest, ItIsNotKeptUntilItsDeadline) {
  limits_.wait_budget = seconds(0);
  limits_.queue_deadline = seconds(2);
  announce_revisions({{"r1", "old"}, {"r2", "new"}});
  Asking next;
  ask(next);
  clock_.advance(seconds(1));
  routes_.advance();
  EXPECT_TRUE(next.turn.has_place());
}

}  // namespace
}  // namespace penstock::dispatch
