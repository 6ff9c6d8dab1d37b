#include "runtime/send_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace penstock::runtime {
namespace {

struct Named final : SendBatch::Sender {
  Named(std::string called, std::string& said) : name(std::move(called)), sent(said) {}
  void send_kept() override {
    sent += name;
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
    batch_.add(*b_);
    batch_.add(*a_);
    EXPECT_EQ(sent_, "");
  }
  EXPECT_EQ(sent_, "ba");
  EXPECT_FALSE(batch_.is_open());
}

TEST_F(SendBatchTest, IsOneWithTheBatchAroundIt) {
  const auto outer = std::make_unique<SendBatch::Open>(batch_);
  {
    const SendBatch::Open inner(batch_);
    batch_.add(*a_);
  }
  EXPECT_EQ(sent_, "");
  EXPECT_TRUE(batch_.is_open());
}

TEST_F(SendBatchTest, SendsForEachOnce) {
  for (const int times : {2, 0}) {
    const SendBatch::Open open(batch_);
    for (int i = 0; i < times; ++i) batch_.add(*a_);
    if (times > 0) batch_.add(*b_);
  }
  EXPECT_EQ(sent_, "ab");
}

TEST_F(SendBatchTest, LeavesOutWhoWentBeforeItsTurn) {
  a_->then = [this] { b_.reset(); };
  {
    const SendBatch::Open open(batch_);
    batch_.add(*a_);
    batch_.add(*b_);
  }
  EXPECT_EQ(sent_, "a");
}

TEST_F(SendBatchTest, KeepsNothingForWhoWritesWhileItCloses) {
  bool was_open = true;
  a_->then = [&] { was_open = batch_.is_open(); };
  {
    const SendBatch::Open open(batch_);
    batch_.add(*a_);
  }
  EXPECT_FALSE(was_open);
}

}  // namespace
}  // namespace penstock::runtime
