#include "base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace penstock::base {
namespace {

TEST(Error, TakesEverythingButTheMessageFromTheTable) {
  const Error error = make_error(Kind::kModelNotFound, "no such model", "model");
  EXPECT_EQ(error.status, 404U);
  EXPECT_EQ(error.type, "invalid_request_error");
  EXPECT_EQ(error.code, "model_not_found");
  EXPECT_EQ(error.param, "model");
  EXPECT_EQ(error.message, "no such model");
  EXPECT_EQ(error.fault, Fault::kClient);
  EXPECT_EQ(error.retry, Retry::kNever);
  EXPECT_FALSE(error.client_may_retry);
}

TEST(Error, EveryKindHasItsOwnNameAndAnErrorStatus) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Kind::kInternal); ++i) {
    const KindTraits& row = traits(static_cast<Kind>(i));
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GE(row.status, 400U) << row.name;
    EXPECT_LE(row.status, 599U) << row.name;
  }
}

TEST(Error, ClientFaultsAreNeverSentToAnotherReplica) {
  for (int i = 0; i <= static_cast<int>(Kind::kInternal); ++i) {
    const KindTraits& row = traits(static_cast<Kind>(i));
    if (row.fault == Fault::kClient) {
      EXPECT_EQ(row.retry, Retry::kNever) << row.name;
    }
  }
}

TEST(Error, TheSameRequestMayComeAgainWhereWhatIsWrongIsNotInItAndPasses) {
  const std::set stays = {Kind::kInsufficientQuota, Kind::kBudgetUsedUp, Kind::kScaledToZero,
                          Kind::kDeploymentFailed, Kind::kConfig};
  for (int i = 0; i <= static_cast<int>(Kind::kInternal); ++i) {
    const KindTraits& row = traits(static_cast<Kind>(i));
    const bool may = row.status == 408 || row.status == 429 || row.status >= 500;
    EXPECT_EQ(row.client_may_retry, may && !stays.contains(static_cast<Kind>(i))) << row.name;
  }
}

TEST(Error, StatusesThatMeanTheClientsFaultAreFourHundreds) {
  EXPECT_EQ(traits(Kind::kInvalidJson).status, 400U);
  EXPECT_EQ(traits(Kind::kBodyTooLarge).status, 413U);
  EXPECT_EQ(traits(Kind::kHeadersTooLarge).status, 431U);
  EXPECT_EQ(traits(Kind::kRequestTimeout).status, 408U);
  EXPECT_EQ(traits(Kind::kUpstreamFailed).status, 502U);
  EXPECT_EQ(traits(Kind::kDeadlineExceeded).status, 504U);
  EXPECT_EQ(traits(Kind::kInternal).name, "internal");
}

TEST(Result, HoldsEitherAValueOrAnError) {
  const Result<int> good = 3;
  const Result<int> bad = make_error(Kind::kInternal, "broken");
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(*good, 3);
  ASSERT_TRUE(bad.has_error());
  EXPECT_EQ(bad.error().message, "broken");
  EXPECT_THROW((void)bad.value(), std::logic_error);
}

}  // namespace
}  // namespace penstock::base
