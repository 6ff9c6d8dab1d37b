#include "proxy/held_answer.h"

#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

constexpr size_t kBudget = 1UL << 20U;

runtime::Payload piece(size_t bytes) {
  runtime::Payload made;
  made.append(std::string(bytes, 'x'));
  return made;
}

TEST(HeldAnswer, TakesNothingOfTheBudgetWhileItIsSmall) {
  runtime::BodyBudget none(kBudget);
  ASSERT_TRUE(none.take(kBudget));
  HeldAnswer answer(none);
  for (int i = 0; i < 64; ++i) {
    auto part = piece(1024);
    answer.add(part);
    EXPECT_TRUE(part.empty());
    EXPECT_TRUE(answer.find_room());
  }
  EXPECT_EQ(answer.pieces(), 1U);
  EXPECT_EQ(answer.size(), HeldAnswer::kFreeBytes);
  auto last = piece(1);
  answer.add(last);
  EXPECT_FALSE(answer.find_room());
}

TEST(HeldAnswer, GivesBackWhatHasBeenSent) {
  runtime::BodyBudget budget(kBudget);
  HeldAnswer answer(budget);
  for (int i = 0; i < 3; ++i) {
    auto part = piece(300'000);
    answer.add(part);
    EXPECT_TRUE(answer.find_room());
  }
  EXPECT_FALSE(budget.take(300'000));
  answer.drop_front();
  EXPECT_EQ(answer.size(), 600'000U);
  EXPECT_TRUE(budget.take(300'000));
  answer.drop_front();
  answer.drop_front();
  EXPECT_TRUE(answer.front().empty());
  EXPECT_TRUE(budget.take(kBudget - 300'000));
}

TEST(HeldAnswer, GoesAloneWhenItIsLargerThanTheWholeBudget) {
  runtime::BodyBudget budget(kBudget);
  HeldAnswer answer(budget);
  for (int i = 0; i < 3; ++i) {
    auto part = piece(kBudget / 2);
    answer.add(part);
    EXPECT_TRUE(answer.find_room());
  }
  EXPECT_FALSE(budget.take(1));
  answer.drop_front();
  EXPECT_FALSE(budget.take(kBudget / 4)) << "what is left is as large as the budget";
  answer.drop_front();
  EXPECT_TRUE(budget.take(kBudget / 4));
  answer.clear();
  EXPECT_TRUE(answer.front().empty());
  EXPECT_TRUE(budget.take(kBudget - kBudget / 4));
}

class HeldAnswerTest : public RequestFlowTest {
 protected:
  // An answer of more than is free, of which the end is still to come.
  void answer_begins() {
    ask(kUnary);
    call().content_type = "application/json";
    call().chunk(std::string(300'000, 'x'));
  }
};

TEST_F(HeldAnswerTest, HoldsTheReplicaBackUntilThereIsRoomForItsAnswer) {
  ASSERT_TRUE(answers_.take(kBudget));
  answer_begins();
  pass(seconds(5));
  EXPECT_EQ(call().granted, 0U);
  answers_.give_back(kBudget);
  pass(seconds(1));
  EXPECT_EQ(call().granted, 300'000U);
  call().chunk("end");
  call().finish();
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.text.size(), 300'003U);
  EXPECT_TRUE(answers_.take(kBudget)) << "all of it is back";
}

TEST_F(HeldAnswerTest, SaysThatThereIsNoRoomAndWhenToComeBack) {
  ASSERT_TRUE(answers_.take(kBudget));
  answer_begins();
  pass(config_.body_timeout + seconds(1));
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_FALSE(reply_.header("retry-after").empty());
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(totals().failed, 1U);
}

TEST_F(HeldAnswerTest, GivesWayWhenItHoldsAPartOfWhatAllWaitFor) {
  answer_begins();
  ASSERT_TRUE(answers_.take(kBudget / 2));
  call().chunk(std::string(300'000, 'x'));
  pass(seconds(3));
  EXPECT_EQ(reply_.status, 503U);
  EXPECT_TRUE(answers_.take(kBudget / 2));
}

TEST_F(HeldAnswerTest, GoesToAnotherReplicaWhenItsOwnIsLostWhileItWaits) {
  serve_from({"r1", "r2"});
  answer_begins();
  ASSERT_TRUE(answers_.take(kBudget / 2));
  call().chunk(std::string(300'000, 'x'));
  call().lose(Source::kLost);
  loop_.poll();
  EXPECT_EQ(upstream_.calls.size(), 2U);
  EXPECT_TRUE(answers_.take(kBudget / 2)) << "the lost answer holds nothing";
}

TEST_F(HeldAnswerTest, LetsGoOfAnAnswerWhoseClientLeavesWhileItWaits) {
  ASSERT_TRUE(answers_.take(kBudget));
  answer_begins();
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(call().cancelled);
  EXPECT_EQ(totals().cancelled, 1U);
}

TEST_F(HeldAnswerTest, HoldsTheAnswerOfASlowReaderUntilItLeaves) {
  reply_.stop_reading();
  answer_begins();
  call().finish();
  EXPECT_FALSE(answers_.take(kBudget));
  reply_.leave();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(answers_.take(kBudget));
}

TEST_F(HeldAnswerTest, DoesNotTakeAReplicaThatIsHeldForASilentOne) {
  config_.body_timeout = 3 * config_.silence;
  ASSERT_TRUE(answers_.take(kBudget));
  answer_begins();
  pass(2 * config_.silence);
  answers_.give_back(kBudget);
  pass(seconds(1));
  EXPECT_EQ(reply_.status, 0U);
  call().finish();
  EXPECT_EQ(reply_.status, 200U);
}

}  // namespace
}  // namespace penstock::proxy
