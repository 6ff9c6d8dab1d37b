#include "outbox.h"

#include <gtest/gtest.h>

#include <string>

#include "support.h"

namespace penstock::replica {
namespace {

using test::finish;
using test::piece;

class OutboxTest : public ::testing::Test {
 protected:
  CallPtr add(uint64_t id, uint64_t credit = 0) {
    auto call = std::make_shared<Call>(id, id, credit);
    EXPECT_TRUE(outbox_.add(call));
    return call;
  }
  void push(const CallPtr& call, News news) {
    if (call->answer.push(news).became_ready) outbox_.ready(call);
  }
  bool fill() {
    frame_.Clear();
    filled_.clear();
    return outbox_.fill(&frame_, &filled_);
  }

  Outbox outbox_;
  v1::ServerFrame frame_;
  Outbox::Filled filled_;
};

TEST_F(OutboxTest, AFrameCarriesAllThatIsReadyWithOneEventForEachCall) {
  const CallPtr one = add(1);
  const CallPtr two = add(2);
  push(one, piece("a"));
  push(two, piece("x"));
  push(one, piece("b"));
  ASSERT_TRUE(fill());
  ASSERT_EQ(frame_.events_size(), 2);
  EXPECT_EQ(frame_.events(0).call_id(), 1u);
  EXPECT_EQ(frame_.events(0).chunk().body(), "ab");
  EXPECT_EQ(frame_.events(1).chunk().body(), "x");
  EXPECT_FALSE(fill());
}

TEST_F(OutboxTest, OnlyTheFirstReadyCallAsksForAFill) {
  EXPECT_TRUE(outbox_.ready(add(1)));
  EXPECT_FALSE(outbox_.ready(add(2)));
}

TEST_F(OutboxTest, AFrameIsBoundedAndWhatIsLeftComesNext) {
  const std::string big(100 << 10, 'x');
  for (uint64_t id = 1; id <= 5; ++id) push(add(id), piece(big));
  ASSERT_TRUE(fill());
  EXPECT_EQ(frame_.events_size(), 3);
  ASSERT_TRUE(fill());
  EXPECT_EQ(frame_.events_size(), 2);
  EXPECT_FALSE(fill());
}

TEST_F(OutboxTest, ACallWithMoreThanAFrameStaysListedBehindTheOthers) {
  const CallPtr big = add(1);
  for (int i = 0; i < 5; ++i) push(big, piece(std::string(64 << 10, 'x')));
  ASSERT_TRUE(fill());
  push(add(2), piece("small"));
  ASSERT_TRUE(fill());
  EXPECT_EQ(frame_.events_size(), 2);
}

TEST_F(OutboxTest, ACallWithoutCreditStaysAwayWhileOthersGo) {
  const CallPtr held = add(1, 1);
  push(held, piece("first"));
  ASSERT_TRUE(fill());
  push(held, piece("second"));
  push(add(2), piece("other"));
  ASSERT_TRUE(fill());
  ASSERT_EQ(frame_.events_size(), 1);
  EXPECT_EQ(frame_.events(0).call_id(), 2u);
}

TEST_F(OutboxTest, AnEndedCallIsForgotten) {
  const CallPtr call = add(1);
  push(call, finish());
  ASSERT_TRUE(fill());
  ASSERT_EQ(filled_.ended.size(), 1u);
  EXPECT_EQ(filled_.ended[0], call);
  EXPECT_TRUE(outbox_.empty());
}

TEST_F(OutboxTest, ARemovedCallLeavesNoTraceInTheNextFrame) {
  const CallPtr call = add(1);
  push(call, piece("a"));
  EXPECT_EQ(outbox_.remove(1), call);
  call->answer.close();
  EXPECT_FALSE(fill());
  EXPECT_EQ(outbox_.remove(1), nullptr);
}

TEST_F(OutboxTest, AProducerThatWasStoppedIsNamedWhenItsBytesAreGone) {
  const CallPtr call = add(1);
  push(call, piece(std::string(TokenQueue::kCapacityBytes, 'x')));
  ASSERT_TRUE(fill());
  ASSERT_EQ(filled_.room.size(), 1u);
  EXPECT_EQ(filled_.room[0], call);
}

TEST_F(OutboxTest, AnIdInUseIsRefused) {
  add(1);
  EXPECT_FALSE(outbox_.add(std::make_shared<Call>(9, 1, 0)));
}

}  // namespace
}  // namespace penstock::replica
