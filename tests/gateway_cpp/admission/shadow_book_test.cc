#include "admission/shadow_book.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace penstock::admission {
namespace {

using std::chrono::seconds;

class ShadowBookTest : public testing::Test {
 protected:
  std::optional<ShadowOutcome> begin() { return book_.begin(rule_, now_); }

  ShadowBook book_;
  routing::ShadowRule rule_{.uid = "u1", .name = "next", .max_concurrent = 2};
  base::SteadyTime now_{seconds(1000)};
};

TEST_F(ShadowBookTest, LetsSoManyBeUnderWayAtOnce) {
  EXPECT_EQ(begin(), std::nullopt);
  EXPECT_EQ(begin(), std::nullopt);
  EXPECT_EQ(begin(), ShadowOutcome::kConcurrency);
  EXPECT_EQ(book_.rows().at(0).under_way, 2U);
  book_.end(rule_);
  EXPECT_EQ(begin(), std::nullopt);
}

TEST_F(ShadowBookTest, LetsSoManyBeginInAMinute) {
  rule_.max_per_minute = 1;
  EXPECT_EQ(begin(), std::nullopt);
  EXPECT_EQ(begin(), ShadowOutcome::kRate);
  now_ += seconds(61);
  EXPECT_EQ(begin(), std::nullopt);
}

TEST_F(ShadowBookTest, LetsSoManyQuestionsBeUnderWayBesides) {
  for (std::uint32_t i = 0; i < ShadowBook::kMostQuestions; ++i) {
    EXPECT_EQ(book_.begin_question(rule_), std::nullopt);
  }
  EXPECT_EQ(book_.begin_question(rule_), ShadowOutcome::kConcurrency);
  EXPECT_EQ(begin(), std::nullopt);
  book_.end_question(rule_);
  EXPECT_EQ(book_.begin_question(rule_), std::nullopt);
}

TEST_F(ShadowBookTest, LetsNoneBeginOfARuleWithoutMoney) {
  rule_.budget_used_up = true;
  EXPECT_EQ(begin(), ShadowOutcome::kBudget);
  EXPECT_EQ(book_.begin_question(rule_), ShadowOutcome::kBudget);
}

TEST_F(ShadowBookTest, CountsRulesBeyondTheMostAsOne) {
  for (std::size_t i = 0; i < ShadowBook::kMostRules + 5; ++i) {
    book_.count("u" + std::to_string(i), "name", ShadowOutcome::kPaired);
  }
  const auto rows = book_.rows();
  ASSERT_EQ(rows.size(), ShadowBook::kMostRules + 1);
  EXPECT_EQ(rows.front().uid, "");
  EXPECT_EQ(rows.front().counts[0], 5U);
}

TEST_F(ShadowBookTest, HasNoTenantPay) {
  rule_.nanousd_per_day = 5;
  const Caller payer = book_.payer(rule_);
  EXPECT_EQ(payer.tenant->id, kShadowTenant);
  EXPECT_EQ(payer.key_id, "u1");
  EXPECT_EQ(payer.key_per_day, (DayAmount{.tokens = 0, .nanousd = 5}));
}

}  // namespace
}  // namespace penstock::admission
