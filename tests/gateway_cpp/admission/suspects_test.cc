#include "admission/suspects.h"

#include <gtest/gtest.h>

namespace penstock::admission {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const base::WallTime kNow{std::chrono::hours(500'000)};

class SuspectsTest : public testing::Test {
 protected:
  void die(const Fingerprint& fingerprint, const std::vector<std::string>& replicas,
           base::WallTime at = kNow) {
    suspects_.died({.fingerprint = fingerprint,
                    .deployment = "mini",
                    .deployment_uid = "uid",
                    .path = "/p",
                    .deaths = {},
                    .until = {}},
                   replicas, at);
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
  const auto unshown = suspects_.unshown(kNow);
  ASSERT_EQ(unshown.size(), 1U);
  EXPECT_EQ(unshown[0].until, kNow + minutes(10));
  EXPECT_EQ(unshown[0].deaths, (std::vector<EngineDeath>{{"r1", kNow, "gw-1"}}));
}

TEST_F(SuspectsTest, NamesAQuarantinedOneAndHowToReleaseIt) {
  die(one_, {"r1", "r2"});
  const auto verdict = suspects_.judge(one_, kNow);
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().status, 400U);
  EXPECT_EQ(verdict.error().code, "quarantined");
  EXPECT_FALSE(verdict.error().client_may_retry);
  EXPECT_NE(verdict.error().message.find(one_.hex()), std::string::npos);
  EXPECT_NE(verdict.error().message.find("/admin/v1/quarantine"), std::string::npos);
  EXPECT_NE(verdict.error().message.find("2027-01-15T08:10:00Z"), std::string::npos)
      << verdict.error().message;
  EXPECT_TRUE(suspects_.judge(two_, kNow).has_value());
  EXPECT_TRUE(suspects_.judge(one_, kNow + minutes(10)).has_value());
  EXPECT_TRUE(suspects_.empty());
}

TEST_F(SuspectsTest, LetsASuspectRunOnlyOnceAndWhereNoOtherDoes) {
  die(one_, {"r1"});
  die(two_, {"r1"});
  ASSERT_EQ(*suspects_.judge(one_, kNow), Standing::kSuspect);
  auto aboard = suspects_.board(one_, "r1");
  ASSERT_TRUE(aboard.has_value());
  EXPECT_TRUE(suspects_.occupied("r1"));
  EXPECT_FALSE(suspects_.occupied("r2"));
  EXPECT_FALSE(suspects_.board(two_, "r1").has_value()) << "another suspect is there";
  EXPECT_FALSE(suspects_.board(one_, "r2").has_value()) << "never on two engines";
  EXPECT_EQ(suspects_.judge(one_, kNow).error().status, 503U);
  EXPECT_EQ(suspects_.judge(one_, kNow).error().retry_after, seconds(1));
  aboard->leave();
  EXPECT_TRUE(suspects_.board(two_, "r1").has_value());
}

TEST_F(SuspectsTest, HearsFromSnapshotsWhomOthersSuspect) {
  Suspect shown{.fingerprint = one_,
                .deployment = "mini",
                .deployment_uid = "uid",
                .path = "/p",
                .deaths = {{"r1", kNow, "gw-2"}, {"r2", kNow, "gw-3"}},
                .until = kNow + minutes(1)};
  suspects_.merge({shown}, kNow);
  EXPECT_FALSE(suspects_.judge(one_, kNow).has_value());
  EXPECT_EQ(changes_, 0);
  suspects_.merge({}, kNow);
  EXPECT_TRUE(suspects_.empty());
}

}  // namespace
}  // namespace penstock::admission
