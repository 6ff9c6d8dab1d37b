// Which revision's replicas a request goes to.
#include "routing/revisions.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "set_fixture.h"

namespace penstock::routing {
namespace {

class Sessions : public SetFixture {
 protected:
  Sessions() { route_.keeps_sessions = true; }
  // So many ready replicas of each, o0... and n0...
  void run(std::size_t old_ones, std::size_t new_ones) {
    replicas_.clear();
    for (std::size_t i = 0; i < old_ones; ++i) add("o" + std::to_string(i), "old");
    for (std::size_t i = 0; i < new_ones; ++i) add("n" + std::to_string(i), "new");
    follow();
  }
  void add(const std::string& id, const std::string& digest) {
    replicas_.push_back(replica(id, "mini"));
    replicas_.back().template_digest = digest;
  }
  // 'o' or 'n'; ' ': nobody.
  char asked_of(std::uint64_t session, std::vector<ReplicaId> excluded = {}) {
    const std::string id = asked({.session = session, .excluded = excluded});
    return id.empty() ? ' ' : id.front();
  }
  std::map<std::uint64_t, char> ask_all(std::uint64_t sessions) {
    std::map<std::uint64_t, char> found;
    for (std::uint64_t session = 1; session <= sessions; ++session) {
      found[session] = asked_of(session);
    }
    return found;
  }
  static std::size_t new_ones(const std::map<std::uint64_t, char>& found) {
    return std::ranges::count_if(found, [](const auto& one) { return one.second == 'n'; });
  }
};

class RevisionsTest : public Sessions, public testing::WithParamInterface<const char*> {
 protected:
  RevisionsTest() { route_.selection_policy = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Policies, RevisionsTest,
                         testing::Values("round_robin", "least_loaded", "power_of_two",
                                         "prefix_aware", "session"));

TEST_P(RevisionsTest, ASessionStaysWhereItBeganWhileThatServes) {
  run(4, 0);
  EXPECT_EQ(new_ones(ask_all(500)), 0U);
  for (const std::size_t left : {4U, 3U, 2U, 1U}) {
    run(left, 5 - left);
    EXPECT_EQ(new_ones(ask_all(500)), 0U) << left;
  }
}

TEST_P(RevisionsTest, ItMovesOnceWhenNoneIsLeft) {
  run(1, 1);
  const auto began = ask_all(500);
  EXPECT_GT(new_ones(began), 0U);
  EXPECT_LT(new_ones(began), 500U);
  fail("o0", Failure::kLost);
  EXPECT_EQ(new_ones(ask_all(500)), 500U);
  pass(seconds(60));  // it is back
  set_.advance(now_);
  set_.note_back(at("o0"), now_);
  ASSERT_TRUE(at("o0").standing().sound);
  EXPECT_EQ(new_ones(ask_all(500)), 500U);
}

TEST_P(RevisionsTest, ARetryGoesToAnotherReplicaOfItsRevisionFirst) {
  run(2, 2);
  const char began = asked_of(7);
  const std::string other = began == 'o' ? "n" : "o";
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(asked_of(7, {{std::string(1, began) + "0"}}), began);
  }
  // Of which there is none left.
  EXPECT_EQ(asked_of(7, {{std::string(1, began) + "0"}, {std::string(1, began) + "1"}}),
            other.front());
  EXPECT_EQ(asked_of(7), other.front());
}

TEST_P(RevisionsTest, WithoutTheSettingOrASessionAllReplicasServe) {
  run(2, 2);
  std::set<char> found;
  for (int i = 0; i < 200; ++i) found.insert(asked_of(0));
  EXPECT_EQ(found, (std::set{'o', 'n'}));
  route_.keeps_sessions = false;
  run(2, 2);
  if (route_.selection_policy == "session") return;  // which keeps it at one replica
  found.clear();
  for (int i = 0; i < 200; ++i) found.insert(asked_of(7));
  EXPECT_EQ(found, (std::set{'o', 'n'}));
}

TEST_F(Sessions, GatewaysWithTheSameRoutesChooseAlikeAndTheNewOnesShareOnlyGrows) {
  std::map<std::uint64_t, char> before;
  for (const std::size_t left : {9U, 5U, 1U}) {
    run(left, 10 - left);
    ReplicaSet here({}, left);  // which know no session
    ReplicaSet there({}, 99);
    here.follow(route_, replicas_, now_);
    there.follow(route_, replicas_, now_);
    const auto ask = [this](ReplicaSet& set, std::uint64_t session) {
      const auto found = set.reserve({.session = session}, now_);
      set.release(*found, now_);
      return found->id().value.front();
    };
    std::map<std::uint64_t, char> began;
    for (std::uint64_t session = 1; session <= 2'000; ++session) {
      began[session] = ask(here, session);
      EXPECT_EQ(ask(there, session), began[session]);
      if (before.contains(session) && before[session] == 'n') {
        EXPECT_EQ(began[session], 'n');
      }
    }
    EXPECT_NEAR(static_cast<double>(new_ones(began)), 200.0 * static_cast<double>(10 - left), 120);
    before = began;
  }
}

TEST_F(Sessions, OneThatCanWaitWaitsForItsRevisionAndAnotherDoesNot) {
  route_.limits.max_ongoing = 1;
  run(1, 0);
  EXPECT_EQ(asked_of(7), 'o');
  EXPECT_EQ(asked_of(8), 'o');
  run(1, 1);
  EXPECT_EQ(chosen({.session = 8, .patient = true}), "o0");  // now it is full
  EXPECT_EQ(chosen({.session = 7, .patient = true}), "");
  EXPECT_EQ(chosen({.session = 7}), "n0");
  set_.release(at("o0"), now_);
  set_.release(at("n0"), now_);
  EXPECT_EQ(asked_of(7), 'n');  // it has moved
}

TEST_F(Sessions, ANewOneWaitsForNobody) {
  route_.limits.max_ongoing = 1;
  run(1, 1);
  std::set<std::string> found;
  for (std::uint64_t session = 1; session <= 2; ++session) {
    found.insert(chosen({.session = session, .patient = true}));
  }
  EXPECT_EQ(found, (std::set<std::string>{"n0", "o0"}));
  EXPECT_EQ(chosen({.session = 3, .patient = true}), "");
}

TEST_F(Sessions, ThoseThatAskedLastAreRemembered) {
  run(1, 0);
  for (std::uint64_t session = 1; session <= Revisions::kSessions; ++session) asked_of(session);
  run(1, 1);
  for (std::uint64_t session = 1; session <= Revisions::kSessions; session += 997) {
    EXPECT_EQ(asked_of(session), 'o') << session;
  }
}

TEST_F(Sessions, NumbersOfOneTemplateAreOneRevision) {
  run(1, 0);
  EXPECT_EQ(asked_of(7), 'o');
  add("again", "old");  // a restart: new replicas of the same
  std::erase_if(replicas_, [](const ReplicaRoute& one) { return one.id.value == "o0"; });
  add("n0", "new");
  follow();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(asked_of(7), 'a');
}

class CanaryRevisionTest : public Sessions {
 protected:
  CanaryRevisionTest() {
    route_.keeps_sessions = false;
    route_.canary = {{"mini", 100, "new"}};
  }
  // Of so many requests, how many went to the canary.
  std::size_t canaries(std::uint64_t requests) {
    std::size_t found = 0;
    for (std::uint64_t i = 1; i <= requests; ++i) {
      found += asked({.share = hash_text(std::to_string(i)), .patient = true}).starts_with('n');
    }
    return found;
  }
};

TEST_F(CanaryRevisionTest, ItsShareGoesToReplicasOfItsDigestAndNothingElse) {
  run(1, 3);
  EXPECT_NEAR(static_cast<double>(canaries(10'000)), 1'000, 100);
  route_.canary[0].permille = 0;
  run(1, 3);
  EXPECT_EQ(canaries(1'000), 0U);
  route_.canary[0].permille = 1000;
  run(1, 3);
  EXPECT_EQ(canaries(1'000), 1'000U);
}

TEST_F(CanaryRevisionTest, WithoutAReplicaOfOneTheOthersAnswerAll) {
  run(1, 0);
  EXPECT_EQ(canaries(100), 0U);
  run(0, 1);
  EXPECT_EQ(canaries(100), 100U);
}

TEST_F(CanaryRevisionTest, ARequestThatCanWaitDoesNotTakeAnothersPlace) {
  route_.limits.max_ongoing = 1;
  route_.canary[0].permille = 1000;
  run(1, 1);
  EXPECT_EQ(chosen({.share = 7, .patient = true}), "n0");
  EXPECT_EQ(chosen({.share = 7, .patient = true}), "");
  EXPECT_EQ(chosen({.share = 7}), "o0");
}

TEST_F(CanaryRevisionTest, WhatItsCanaryCouldNotAnswerGoesToTheOthersOrNobody) {
  route_.limits.max_ongoing = 1;
  route_.canary[0].permille = 1000;
  run(1, 2);
  const Traits returned{.share = 7, .rest = true};
  EXPECT_EQ(chosen(returned), "o0");
  EXPECT_EQ(chosen(returned), "") << "it waits, however long";
  set_.release(at("o0"), now_);
  EXPECT_TRUE(set_.has_rest({}));
  EXPECT_FALSE(set_.has_rest(std::vector<ReplicaId>{{"o0"}}));
  fail("o0", Failure::kLost);
  EXPECT_FALSE(set_.has_rest({}));
}

TEST_F(CanaryRevisionTest, ASessionIsNotKeptWhereTheOtherArmHadToAnswerIt) {
  route_.keeps_sessions = true;
  route_.canary[0].permille = 1000;
  run(1, 1);
  EXPECT_EQ(asked({.session = 5, .share = 7, .rest = true}), "o0");
  EXPECT_TRUE(set_.is_for("new", {.session = 5, .share = 7}));
  EXPECT_EQ(asked({.session = 5, .share = 7, .patient = true}), "n0");
}

TEST_F(CanaryRevisionTest, ARequestIsOfOneArmWhateverServes) {
  route_.canary[0].permille = 500;
  run(1, 1);
  std::map<std::uint64_t, bool> arms;
  for (std::uint64_t share = 1; share <= 200; ++share) {
    const Traits traits{.share = hash_text(std::to_string(share)), .patient = true};
    arms[share] = set_.is_for("new", traits);
    EXPECT_EQ(asked(traits), arms[share] ? "n0" : "o0");
  }
  fail("n0", Failure::kLost);
  for (const auto& [share, is_canarys] : arms) {
    EXPECT_EQ(set_.is_for("new", {.share = hash_text(std::to_string(share))}), is_canarys);
  }
}

TEST_F(CanaryRevisionTest, OneThatIsDoubtedIsProbed) {
  route_.canary[0].permille = 1000;
  run(1, 1);
  for (int i = 0; i < 3; ++i) fail("n0", Failure::kBadAnswer);
  EXPECT_EQ(asked({.share = 7, .patient = true}), "o0");
  pass(seconds(2));
  set_.advance(now_);
  EXPECT_EQ(chosen({.share = 7, .patient = true}), "n0");
  EXPECT_EQ(asked({.share = 8, .patient = true}), "o0") << "by one request at a time";
  const std::vector<ReplicaId> tried{{"n0"}};
  EXPECT_EQ(asked({.share = 7, .patient = true, .excluded = tried}), "o0");
}

TEST_F(CanaryRevisionTest, ASessionThatIsKeptIsOfTheArmThatItIsAt) {
  route_.keeps_sessions = true;
  route_.canary[0].permille = 0;
  run(1, 1);
  EXPECT_EQ(asked({.session = 7, .share = 7}), "o0");
  route_.canary[0].permille = 1000;
  run(1, 1);
  EXPECT_FALSE(set_.is_for("new", {.session = 7, .share = 7}));
  EXPECT_EQ(asked({.session = 7, .share = 7}), "o0");
  EXPECT_TRUE(set_.is_for("new", {.session = 8, .share = 8}));
  EXPECT_EQ(asked({.session = 8, .share = 8}), "n0");
}

TEST_F(CanaryRevisionTest, ASessionThatIsKeptStaysWhateverItsShareBecomes) {
  route_.keeps_sessions = true;
  run(1, 1);
  const auto session = [&](const std::string& name) {
    return asked({.session = hash_text(name), .share = hash_text(name)}).front();
  };
  std::map<std::string, char> began;
  for (int i = 0; i < 200; ++i) began["s" + std::to_string(i)] = session("s" + std::to_string(i));
  route_.canary[0].permille = 900;
  run(1, 1);
  for (const auto& [name, at] : began) EXPECT_EQ(session(name), at);
}

}  // namespace
}  // namespace penstock::routing
