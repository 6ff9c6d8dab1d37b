#include "runtime/send_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::runtime {
namespace {

struct Named final : SendBatch::Sender {
  Named(std::string called, std::string& said) : name(std::move(called)), sent(said) {}
  void send_kept(std::string_view bytes) override {
    sent += name;
    sent += bytes;
    if (then) then();
  }

  std::string name;
  std::string& sent;
  std::function<void()> then;
};

class SendBatchTest : public testing::Test {
 protected:
  SendBatch batch_;
  std::string sent_;
  std::unique_ptr<Named> a_ = std::make_unique<Named>("a", sent_);
  std::unique_ptr<Named> b_ = std::make_unique<Named>("b", sent_);
};

TEST_F(SendBatchTest, SendsAllInTheirOrderWhenItCloses) {
  {
    const SendBatch::Open open(batch_);
    EXPECT_TRUE(batch_.keep(*b_, "1"));
    EXPECT_TRUE(batch_.keep(*a_, "2"));
    EXPECT_EQ(sent_, "");
  }
  EXPECT_EQ(sent_, "b1a2");
}

TEST_F(SendBatchTest, IsOneWithTheBatchAroundIt) {
  const auto outer = std::make_unique<SendBatch::Open>(batch_);
  {
    const SendBatch::Open inner(batch_);
    EXPECT_TRUE(batch_.keep(*a_, "1"));
  }
  EXPECT_EQ(sent_, "");
  EXPECT_TRUE(batch_.keep(*b_, "2"));
}

TEST_F(SendBatchTest, SendsWhatIsKeptForOneTogetherInItsPlace) {
  {
    const SendBatch::Open open(batch_);
    EXPECT_TRUE(batch_.keep_more(*a_, "1", "2"));
    EXPECT_TRUE(batch_.keep_more(*a_, "3"));
    EXPECT_TRUE(batch_.keep_more(*b_, "4"));
    EXPECT_TRUE(batch_.keep_more(*a_, std::string(100, '5'), "6"));
    EXPECT_EQ(a_->kept_size(), 104U);
    EXPECT_TRUE(batch_.keep_more(*b_, "7"));
  }
  EXPECT_EQ(sent_, "a123" + std::string(100, '5') + "6b47");
  EXPECT_EQ(a_->kept_size(), 0U);
  EXPECT_FALSE(batch_.keep_more(*a_, "8")) << "none is open";
}

TEST_F(SendBatchTest, KeepsNoMoreForOneThanThereIsRoomToMoveItTo) {
  const SendBatch::Open open(batch_);
  EXPECT_TRUE(batch_.keep(*a_, std::string(SendBatch::kMostKept / 2, 'a')));
  EXPECT_TRUE(batch_.keep(*b_, "b"));
  EXPECT_FALSE(batch_.keep_more(*a_, "more"));
  EXPECT_EQ(batch_.take_back(*a_).size(), SendBatch::kMostKept / 2);
}

TEST_F(SendBatchTest, KeepsNothingWhereNoneIsOpen) {
  EXPECT_FALSE(batch_.keep(*a_, "1"));
  { const SendBatch::Open open(batch_); }
  EXPECT_FALSE(batch_.keep(*a_, "1"));
  EXPECT_EQ(sent_, "");
}

TEST_F(SendBatchTest, GivesBackWhatItKept) {
  {
    const SendBatch::Open open(batch_);
    batch_.keep(*a_, "1");
    batch_.keep(*b_, "2");
    EXPECT_FALSE(batch_.keep(*a_, "3")) << "of each it keeps one";
    EXPECT_EQ(batch_.take_back(*a_), "1");
    EXPECT_EQ(batch_.take_back(*a_), "");
    EXPECT_TRUE(batch_.keep(*a_, "4"));
  }
  EXPECT_EQ(sent_, "b2a4");
}

TEST_F(SendBatchTest, KeepsNoMoreThanItsMost) {
  const SendBatch::Open open(batch_);
  EXPECT_FALSE(batch_.keep(*a_, std::string(SendBatch::kMostKept + 1, 'x')));
  EXPECT_TRUE(batch_.keep(*a_, std::string(SendBatch::kMostKept, 'x')));
  EXPECT_FALSE(batch_.keep(*b_, "y"));
}

TEST_F(SendBatchTest, LeavesOutWhoWentBeforeItsTurn) {
  a_->then = [this] { b_.reset(); };
  {
    const SendBatch::Open open(batch_);
    batch_.keep(*a_, "1");
    batch_.keep(*b_, "2");
  }
  EXPECT_EQ(sent_, "a1");
}

TEST_F(SendBatchTest, KeepsNothingForWhoWritesWhileItCloses) {
  bool kept = true;
  a_->then = [&] { kept = batch_.keep(*b_, "2"); };
  {
    const SendBatch::Open open(batch_);
    batch_.keep(*a_, "1");
  }
  EXPECT_FALSE(kept);
}

TEST_F(SendBatchTest, EndsTheOneWithinWhichAnotherBegins) {
  a_->then = [&] {
    const SendBatch::Open again(batch_);
    batch_.keep(*a_, "3");
    a_->then = nullptr;
  };
  {
    const SendBatch::Open open(batch_);
    batch_.keep(*a_, "1");
    batch_.keep(*b_, "2");
  }
  EXPECT_EQ(sent_, "a1b2a3");
}

TEST_F(SendBatchTest, KeepsWhatIsGivenInPartsAsOne) {
  {
    const SendBatch::Open open(batch_);
    EXPECT_TRUE(batch_.keep(*a_, "1", std::string(100'000, 'x'), ""));
    EXPECT_TRUE(batch_.keep(*b_, "2", "3"));
  }
  EXPECT_EQ(sent_, "a1" + std::string(100'000, 'x') + "b23");
  {
    const SendBatch::Open open(batch_);
    EXPECT_TRUE(batch_.keep(*b_, "4"));
  }
  EXPECT_EQ(sent_.substr(sent_.size() - 5), "b23b4");
}

TEST(SendBatchWithAListenerTest, TellsItAfterEachBatch) {
  std::string said;
  SendBatch batch([&] { said += '.'; });
  Named a("a", said);
  {
    const SendBatch::Open outer(batch);
    const SendBatch::Open inner(batch);
    EXPECT_TRUE(batch.keep(a, "1"));
  }
  { const SendBatch::Open empty(batch); }
  EXPECT_EQ(said, "a1..");
}

}  // namespace
}  // namespace penstock::runtime
