#include "admission/suspects.h"

#include <gtest/gtest.h>

namespace penstock::admission {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const base::WallTime kStart{std::chrono::hours(500'000)};
const base::SteadyTime kThen{std::chrono::hours(1)};

class SuspectsTest : public testing::Test {
 protected:
  void die(const Fingerprint& fingerprint, const std::vector<std::string>& replicas,
           base::WallTime at = kStart) {
    std::vector<EngineDeath> deaths;
    for (const std::string& replica : replicas) deaths.push_back({replica});
    suspects_.died({.fingerprint = fingerprint,
                    .deployment = "mini",
                    .deployment_uid = "uid",
                    .path = "/p",
                    .deaths = std::move(deaths),
                    .until = {}},
                   at);
  }

  int changes_ = 0;
  Suspects suspects_{"gw-1", minutes(10), [this] { ++changes_; }};
  const Fingerprint one_ = fingerprint_of("uid", "/p", "one");
  const Fingerprint two_ = fingerprint_of("uid", "/p", "two");
};

TEST_F(SuspectsTest, TellsWhenThereIsSomethingToReport) {
  EXPECT_TRUE(suspects_.empty());
  die(one_, {"r1"});
  EXPECT_FALSE(suspects_.empty());
  EXPECT_EQ(changes_, 1);
  const auto unshown = suspects_.unshown(kStart);
  ASSERT_EQ(unshown.size(), 1U);
  EXPECT_EQ(unshown[0].until, kStart + minutes(10));
  EXPECT_EQ(unshown[0].deaths, (std::vector<EngineDeath>{{"r1", kStart, "gw-1"}}));
}

TEST_F(SuspectsTest, NamesAQuarantinedOneAndHowToReleaseIt) {
  die(one_, {"r1", "r2"});
  const auto verdict = suspects_.suspicion(one_, kStart);
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().status, 400U);
  EXPECT_EQ(verdict.error().code, "quarantined");
  EXPECT_FALSE(verdict.error().client_may_retry);
  EXPECT_NE(verdict.error().message.find(one_.hex()), std::string::npos);
  EXPECT_NE(verdict.error().message.find("/admin/v1/quarantine"), std::string::npos);
  EXPECT_NE(verdict.error().message.find("2027-01-15T08:10:00Z"), std::string::npos)
      << verdict.error().message;
  EXPECT_TRUE(suspects_.suspicion(two_, kStart).has_value());
  EXPECT_TRUE(suspects_.suspicion(one_, kStart + minutes(10)).has_value());
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(SuspectsTest, LetsASuspectRunOnlyOnceAndWhereNoOtherDoes) {
  die(one_, {"r1"});
  die(two_, {"r1"});
  ASSERT_EQ(*suspects_.suspicion(one_, kStart), Suspicion::kSuspect);
  auto aboard = suspects_.board(one_, "r1", kThen);
  ASSERT_TRUE(aboard.has_value());
  EXPECT_TRUE(suspects_.occupied("r1"));
  EXPECT_FALSE(suspects_.occupied("r2"));
  EXPECT_FALSE(suspects_.board(two_, "r1", kThen).has_value()) << "another suspect is there";
  EXPECT_FALSE(suspects_.board(one_, "r2", kThen).has_value()) << "never on two engines";
  aboard->leave();
  EXPECT_TRUE(suspects_.board(two_, "r1", kThen).has_value());
}

TEST_F(SuspectsTest, TakesAnAnswerThatRunsToBeHalfDone) {
  const auto here = suspects_.board(one_, "r1", kThen);
  const auto there = suspects_.board(two_, "r2", kThen + seconds(20));
  const auto now = kThen + seconds(30);
  const auto third = fingerprint_of("uid", "/p", "three");
  const std::vector<std::string_view> both = {"r1", "r2"};
  const std::vector<std::string_view> first = {"r1"};
  const std::vector<std::string_view> others = {"r9"};
  EXPECT_EQ(suspects_.free_in(third, both, now), seconds(10)) << "the first that is done";
  EXPECT_EQ(suspects_.free_in(third, first, now), seconds(30));
  EXPECT_EQ(suspects_.free_in(two_, others, now), seconds(10)) << "it runs itself, elsewhere";
  EXPECT_EQ(suspects_.free_in(third, others, now), seconds(1)) << "nobody is in its way";
}

TEST_F(SuspectsTest, TellsAClientToComeBackWhenThereMayBeAPlace) {
  const auto error = suspect_must_wait(std::chrono::milliseconds(12'100));
  EXPECT_EQ(error.status, 503U);
  EXPECT_EQ(error.retry_after, seconds(13));
  EXPECT_NE(error.message.find("in 13 s"), std::string::npos);
  EXPECT_EQ(suspect_must_wait(std::chrono::milliseconds(0)).retry_after, seconds(1));
  EXPECT_EQ(suspect_must_wait(minutes(9)).retry_after, seconds(60));
}

TEST_F(SuspectsTest, ForgetsOnceASecondAndJudgesByTheTermAtOnce) {
  die(one_, {"r1"});
  die(two_, {"r1"}, kStart + std::chrono::milliseconds(500));
  const auto end = kStart + minutes(10);
  EXPECT_EQ(*suspects_.suspicion(one_, end), Suspicion::kClear);
  EXPECT_EQ(*suspects_.suspicion(two_, end + std::chrono::milliseconds(500)), Suspicion::kClear);
  EXPECT_FALSE(suspects_.empty()) << "looked for a moment ago";
  EXPECT_EQ(*suspects_.suspicion(one_, end + seconds(1)), Suspicion::kClear);
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(SuspectsTest, CountsFindingsSoThatRequestsThatRunCanBeLookedAtOnceMore) {
  const auto before = suspects_.findings();
  die(one_, {"r1"});
  EXPECT_EQ(suspects_.findings(), before + 1);
  const auto ours = suspects_.unshown(kStart);
  suspects_.merge(ours, kStart);
  EXPECT_EQ(suspects_.findings(), before + 1) << "known before";
  Suspect theirs = ours.front();
  theirs.fingerprint = two_;
  suspects_.merge({theirs}, kStart);
  EXPECT_EQ(suspects_.findings(), before + 2);
}

TEST_F(SuspectsTest, CountsAFindingWhenASnapshotShowsThatOneStandsWorse) {
  die(one_, {"r1"});
  Suspect shown = suspects_.unshown(kStart).front();
  const auto before = suspects_.findings();
  shown.deaths.push_back({"r2", kStart, "gw-2"});
  suspects_.merge({shown}, kStart);
  EXPECT_EQ(suspects_.findings(), before + 1) << "quarantined now";
  suspects_.merge({shown}, kStart);
  EXPECT_EQ(suspects_.findings(), before + 1) << "known before";
}

TEST_F(SuspectsTest, CountsNoFindingsForOneThatWasAnsweredAndStaysClear) {
  die(one_, {"r1"});
  const auto ours = suspects_.unshown(kStart);
  suspects_.answered(one_, kStart);
  const auto before = suspects_.findings();
  suspects_.merge(ours, kStart);
  EXPECT_EQ(suspects_.findings(), before);
  EXPECT_EQ(changes_, 2) << "the head is to hear of the answer, too";
  suspects_.answered(one_, kStart);
  EXPECT_EQ(changes_, 2);
}

TEST_F(SuspectsTest, HearsFromSnapshotsWhomOthersSuspect) {
  Suspect shown{.fingerprint = one_,
                .deployment = "mini",
                .deployment_uid = "uid",
                .path = "/p",
                .deaths = {{"r1", kStart, "gw-2"}, {"r2", kStart, "gw-3"}},
                .until = kStart + minutes(1)};
  suspects_.merge({shown}, kStart);
  EXPECT_FALSE(suspects_.suspicion(one_, kStart).has_value());
  EXPECT_EQ(changes_, 0);
  suspects_.merge({}, kStart);
  EXPECT_TRUE(suspects_.empty());
}

}  // namespace
}  // namespace penstock::admission
