// What streams that run on a replica are told of it.
#include "set_fixture.h"

namespace penstock::routing {
namespace {

constexpr base::WallTime kNoon{std::chrono::hours(12)};

class WordTest : public SetFixture {
 protected:
  WordTest() {
    route_.limits.progress_deadline = seconds(2);
    follow(2);
  }
  Word word(const std::string& id) { return at(id).word(); }
  // Two with a call each, which have made a token.
  void both_run() {
    for (const std::string id : {"r0", "r1"}) {
      ASSERT_TRUE(set_.reserve_at({id}, ReplicaSet::What::kAnswer, now_));
      report(id, {.running = 1, .tokens = 1});
    }
  }
};

TEST_F(WordTest, OneThatIsStoppedIsStuckByTheClockAloneUntilItMovesAgain) {
  both_run();
  const std::uint64_t before = set_.words();
  pass(seconds(1));
  report("r1", {.running = 1, .tokens = 2});
  pass(seconds(1));
  set_.advance(now_);
  EXPECT_EQ(word("r0"), Word::kStuck);
  EXPECT_EQ(word("r1"), Word::kNone);
  EXPECT_EQ(set_.words(), before + 1);
  report("r0", {.running = 1, .tokens = 2});
  EXPECT_EQ(word("r0"), Word::kNone);
  EXPECT_EQ(set_.words(), before + 2);
}

TEST_F(WordTest, TheLastOneIsNeverStuckForItHasNoOther) {
  both_run();
  pass(seconds(2));
  set_.advance(now_);
  EXPECT_NE(word("r0"), word("r1"));
}

TEST_F(WordTest, ASilentOneIsStuckUntilItTellsItsLoad) {
  route_.limits.progress_deadline = seconds(0);
  follow();
  fail("r0", Failure::kSilent);
  EXPECT_EQ(word("r0"), Word::kStuck);
  report("r0", {});
  EXPECT_EQ(word("r0"), Word::kNone);
}

TEST_F(WordTest, ALostOneIsNotStuckItsCallsEndByThemselves) {
  fail("r0", Failure::kLost);
  EXPECT_EQ(word("r0"), Word::kNone);
}

TEST_F(WordTest, ThoseThatAreToGoHandOverOnceTheirTimeHasCome) {
  replicas_[0].hand_over_at = kNoon;
  replicas_[1].hand_over_at = kNoon + seconds(5);
  follow();
  set_.look_for_leaving(kNoon - milliseconds(1));
  EXPECT_EQ(word("r0"), Word::kNone);
  set_.look_for_leaving(kNoon);
  EXPECT_EQ(word("r0"), Word::kHandOver);
  EXPECT_EQ(word("r1"), Word::kNone);
  set_.look_for_leaving(kNoon + seconds(5));
  EXPECT_EQ(word("r1"), Word::kHandOver);
  replicas_[0].hand_over_at = {};  // it stays
  follow();
  set_.look_for_leaving(kNoon + seconds(5));
  EXPECT_EQ(word("r0"), Word::kNone);
  EXPECT_EQ(word("r1"), Word::kHandOver);
}

TEST_F(WordTest, ItStaysSaidOfOneThatHasLeftTheRoutes) {
  replicas_[0].hand_over_at = kNoon;
  follow();
  set_.look_for_leaving(kNoon);
  const auto kept = set_.find({"r0"});
  replicas_.erase(replicas_.begin());
  follow();
  set_.look_for_leaving(kNoon);
  EXPECT_EQ(kept->word(), Word::kHandOver);
}

}  // namespace
}  // namespace penstock::routing
