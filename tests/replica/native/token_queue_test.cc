#include "token_queue.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace penstock::replica {
namespace {

using test::finish;
using test::piece;

constexpr size_t kAll = 1 << 20;

News head_and(std::string_view body) {
  News news = piece(body);
  news.has_head = true;
  news.head.set_status(200);
  return news;
}

TokenQueue::Pushed push(TokenQueue* queue, News news) { return queue->push(news); }

TEST(TokenQueue, EverythingThatWaitsLeavesAsOneEvent) {
  TokenQueue queue;
  push(&queue, head_and("one"));
  push(&queue, piece("two"));
  push(&queue, finish());
  v1::CallEvent event;
  const auto taken = queue.take(&event, kAll);
  EXPECT_TRUE(taken.ended);
  EXPECT_FALSE(taken.more);
  EXPECT_EQ(event.head().status(), 200u);
  EXPECT_EQ(event.chunk().body(), "onetwo");
  EXPECT_EQ(event.chunk().events(), 2u);
  EXPECT_EQ(event.finished().backend(), "test");
}

TEST(TokenQueue, BecomesReadyOnceUntilItIsTaken) {
  TokenQueue queue;
  EXPECT_TRUE(push(&queue, piece("a")).became_ready);
  EXPECT_FALSE(push(&queue, piece("b")).became_ready);
  v1::CallEvent event;
  queue.take(&event, kAll);
  EXPECT_TRUE(push(&queue, piece("c")).became_ready);
}

TEST(TokenQueue, AHeadWaitsForTheFirstBytes) {
  TokenQueue queue;
  News head;
  head.has_head = true;
  EXPECT_FALSE(queue.push(head).became_ready);
  EXPECT_TRUE(push(&queue, piece("a")).became_ready);
}

TEST(TokenQueue, AFailureBeforeAnyBytesGoesWithoutAHead) {
  TokenQueue queue;
  News news;
  news.has_head = true;
  news.end.mutable_failed()->mutable_error()->set_status(500);
  queue.push(news);
  v1::CallEvent event;
  EXPECT_TRUE(queue.take(&event, kAll).ended);
  EXPECT_FALSE(event.has_head());
  EXPECT_EQ(event.failed().error().status(), 500u);
}

TEST(TokenQueue, ThePieceThatCrossesTheCreditIsSentWholeAndTheNextIsHeld) {
  TokenQueue queue(5);
  push(&queue, piece("abc"));
  push(&queue, piece("def"));
  push(&queue, piece("ghi"));
  v1::CallEvent event;
  const auto taken = queue.take(&event, kAll);
  EXPECT_EQ(event.chunk().body(), "abcdef");
  EXPECT_FALSE(taken.more);
  EXPECT_FALSE(queue.take(&event, kAll).anything);
}

TEST(TokenQueue, CreditSetsAHeldCallFree) {
  TokenQueue queue(1);
  push(&queue, piece("abc"));
  push(&queue, piece("def"));
  v1::CallEvent event;
  queue.take(&event, kAll);
  EXPECT_FALSE(queue.add_credit(2)) << "the first piece took three bytes, one was granted";
  EXPECT_TRUE(queue.add_credit(1));
  event.Clear();
  queue.take(&event, kAll);
  EXPECT_EQ(event.chunk().body(), "def");
}

TEST(TokenQueue, TheEndWaitsForHeldBytes) {
  TokenQueue queue(1);
  push(&queue, piece("abc"));
  push(&queue, piece("def"));
  push(&queue, finish());
  v1::CallEvent event;
  EXPECT_FALSE(queue.take(&event, kAll).ended);
  queue.add_credit(100);
  EXPECT_TRUE(queue.take(&event, kAll).ended);
}

TEST(TokenQueue, TheEndNeedsNoCreditOfItsOwn) {
  TokenQueue queue(1);
  push(&queue, piece("abc"));
  v1::CallEvent event;
  queue.take(&event, kAll);
  EXPECT_TRUE(push(&queue, finish()).became_ready);
  EXPECT_TRUE(queue.take(&event, kAll).ended);
}

TEST(TokenQueue, CreditNearTheLargestNumberDoesNotOverflow) {
  TokenQueue queue(UINT64_MAX);
  queue.add_credit(UINT64_MAX);
  push(&queue, piece("abc"));
  v1::CallEvent event;
  EXPECT_TRUE(queue.take(&event, kAll).anything);
}

TEST(TokenQueue, TheBudgetSplitsAtPieces) {
  TokenQueue queue;
  for (const char* text : {"aaaa", "bbbb", "cccc"}) push(&queue, piece(text));
  v1::CallEvent event;
  const auto taken = queue.take(&event, 6);
  EXPECT_EQ(event.chunk().body(), "aaaabbbb");
  EXPECT_TRUE(taken.more);
  event.Clear();
  EXPECT_FALSE(queue.take(&event, 6).more);
  EXPECT_EQ(event.chunk().body(), "cccc");
}

TEST(TokenQueue, SaysHowManyTokensWentIntoTheBytesThatItSends) {
  TokenQueue queue;
  News news;
  for (const uint32_t tokens : {1u, 2u, 4u}) {
    news.body.append("aaaa");
    news.add_piece(4, 1, 0, tokens);
  }
  queue.push(news);
  v1::CallEvent event;
  queue.take(&event, 6);
  EXPECT_EQ(event.chunk().tokens(), 3u);
  event.Clear();
  queue.take(&event, kAll);
  EXPECT_EQ(event.chunk().tokens(), 4u) << "those since the chunk before";
}

News head_of(std::string_view content_type, std::string_view body) {
  News news = head_and(body);
  news.head.set_content_type(std::string(content_type));
  return news;
}

TEST(TokenQueue, AUnaryBodyGoesInPartsAndCountsWithItsLast) {
  TokenQueue queue;
  News news = head_of("application/json", "aaaabbbbcc");
  news.pieces.back().groups = 1;
  news.groups.emplace_back().add_token_ids(7);
  queue.push(news);
  push(&queue, finish());
  std::string body;
  for (const uint32_t left : {10u, 6u, 2u}) {
    v1::CallEvent event;
    const auto taken = queue.take(&event, 4);
    body += event.chunk().body();
    const bool last = left <= 4;
    EXPECT_EQ(event.chunk().body().size(), std::min(left, 4u));
    EXPECT_EQ(event.has_head(), left == 10);
    EXPECT_EQ(event.chunk().events(), last ? 1u : 0u);
    EXPECT_EQ(event.chunk().groups_size(), last ? 1 : 0);
    EXPECT_EQ(taken.more, !last);
    EXPECT_EQ(taken.ended, last);
  }
  EXPECT_EQ(body, "aaaabbbbcc");
}

TEST(TokenQueue, APartOfAUnaryBodyCostsItsCredit) {
  TokenQueue queue(5);
  push(&queue, head_of("application/json", "aaaabbbbcccc"));
  v1::CallEvent event;
  EXPECT_TRUE(queue.take(&event, 4).more);
  EXPECT_FALSE(queue.take(&event, 4).more) << "five are granted";
  EXPECT_EQ(event.chunk().body(), "b");
  EXPECT_FALSE(queue.take(&event, 4).anything);
  EXPECT_TRUE(queue.add_credit(7));
  event.Clear();
  EXPECT_TRUE(queue.take(&event, 4).more);
  EXPECT_FALSE(queue.take(&event, 4).more);
  EXPECT_EQ(event.chunk().body(), "ccc");
}

TEST(TokenQueue, AnEventOfAStreamIsNeverSplit) {
  TokenQueue queue;
  push(&queue, head_of("text/event-stream; charset=utf-8", "aaaabbbbcc"));
  v1::CallEvent event;
  EXPECT_FALSE(queue.take(&event, 4).more);
  EXPECT_EQ(event.chunk().body(), "aaaabbbbcc");
}

TEST(TokenQueue, AProducerHearsOfRoomByWhatIsLeftOfAUnaryBody) {
  TokenQueue queue(0, 8);
  EXPECT_TRUE(push(&queue, head_of("application/json", "aaaabbbbcccc")).full);
  v1::CallEvent event;
  EXPECT_FALSE(queue.take(&event, 4).room);
  EXPECT_TRUE(queue.take(&event, 4).room);
}

TEST(TokenQueue, GroupsLeaveWithTheirOwnPieces) {
  TokenQueue queue(1);
  for (uint32_t id : {7u, 8u}) {
    News news = piece("x");
    news.pieces.back().groups = 1;
    news.groups.emplace_back().add_token_ids(id);
    queue.push(news);
  }
  v1::CallEvent event;
  queue.take(&event, kAll);
  ASSERT_EQ(event.chunk().groups_size(), 1);
  EXPECT_EQ(event.chunk().groups(0).token_ids(0), 7u);
  queue.add_credit(9);
  event.Clear();
  queue.take(&event, kAll);
  ASSERT_EQ(event.chunk().groups_size(), 1);
  EXPECT_EQ(event.chunk().groups(0).token_ids(0), 8u);
}

TEST(TokenQueue, AFullQueueStopsItsProducerAndTellsOnceWhenThereIsRoom) {
  TokenQueue queue(0, 10);
  EXPECT_FALSE(push(&queue, piece("123456")).full);
  EXPECT_TRUE(push(&queue, piece("123456")).full);
  v1::CallEvent event;
  EXPECT_FALSE(queue.take(&event, 1).room) << "six of ten bytes still wait";
  EXPECT_TRUE(queue.take(&event, 1).room);
  push(&queue, piece("x"));
  EXPECT_FALSE(queue.take(&event, kAll).room);
}

TEST(TokenQueue, AClosedQueueTakesAndGivesNothing) {
  TokenQueue queue;
  push(&queue, piece("a"));
  queue.close();
  queue.close();
  EXPECT_TRUE(push(&queue, piece("b")).closed);
  EXPECT_FALSE(queue.add_credit(5));
  v1::CallEvent event;
  EXPECT_FALSE(queue.take(&event, kAll).anything);
}

TEST(TokenQueue, ACancelDropsWhatWaitsAndTheEndGoesWithoutCredit) {
  TokenQueue queue(1);
  push(&queue, piece("first"));
  v1::CallEvent event;
  queue.take(&event, kAll);
  push(&queue, piece("held"));
  EXPECT_FALSE(queue.cancel());
  EXPECT_TRUE(push(&queue, piece("late")).closed);
  News news;
  news.end.mutable_cancelled()->mutable_usage()->set_completion_tokens(3);
  EXPECT_TRUE(queue.push(news).became_ready);
  event.Clear();
  const auto taken = queue.take(&event, kAll);
  EXPECT_TRUE(taken.ended);
  EXPECT_FALSE(event.has_chunk());
  EXPECT_EQ(event.cancelled().usage().completion_tokens(), 3u);
  EXPECT_FALSE(queue.cancel()) << "it is over";
}

TEST(TokenQueue, AnEndThatWaitsBehindTheCreditIsToldAsCancelledWithItsUsage) {
  for (const bool before : {true, false}) {
    TokenQueue queue(1);
    push(&queue, piece("first"));
    push(&queue, piece("held"));
    v1::CallEvent event;
    queue.take(&event, kAll);
    News news = finish();
    news.end.mutable_finished()->mutable_usage()->set_prompt_tokens(4);
    if (before) queue.push(news);
    EXPECT_EQ(queue.cancel(), before);
    if (!before) queue.push(news);
    event.Clear();
    EXPECT_TRUE(queue.take(&event, kAll).ended);
    EXPECT_EQ(event.cancelled().usage().prompt_tokens(), 4u);
    EXPECT_FALSE(event.has_finished());
  }
}

TEST(TokenQueue, NothingFollowsTheEnd) {
  TokenQueue queue;
  push(&queue, finish());
  EXPECT_TRUE(push(&queue, piece("late")).closed);
  v1::CallEvent event;
  EXPECT_TRUE(queue.take(&event, kAll).ended);
  EXPECT_FALSE(queue.take(&event, kAll).anything);
}

}  // namespace
}  // namespace penstock::replica
