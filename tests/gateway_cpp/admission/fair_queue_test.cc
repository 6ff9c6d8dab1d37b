#include "admission/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "admission/queue_simulation.h"

namespace penstock::admission {
namespace {

using base::Priority;

class FairQueueTest : public testing::Test {
 protected:
  QueueEntry& push(const std::string& tenant, std::uint64_t work = 100,
                   Priority priority = Priority::kNormal) {
    QueueEntry& entry = entries_.emplace_back();
    entry.tenant = tenant;
    entry.work = work;
    entry.priority = priority;
    queue_.push(entry);
    return entry;
  }

  // Starts the next, and the tenants of those that follow.
  std::string started(std::size_t count) {
    std::string tenants;
    for (std::size_t i = 0; i < count; ++i) {
      QueueEntry* entry = queue_.next(kAny);
      if (entry == nullptr) break;
      queue_.start(*entry);
      tenants += entry->tenant;
    }
    return tenants;
  }

  std::deque<QueueEntry> entries_;  // outlives the queue's links
  FairQueue queue_;
};

TEST_F(FairQueueTest, AnEmptyOneHasNobody) {
  EXPECT_EQ(queue_.next(kAny), nullptr);
  EXPECT_EQ(queue_.size(), 0U);
  EXPECT_EQ(queue_.work_before("a", Priority::kLow), 0U);
}

TEST_F(FairQueueTest, OneTenantIsServedInTheOrderOfItsComing) {
  std::vector<QueueEntry*> pushed;
  for (int i = 0; i < 5; ++i) pushed.push_back(&push("a", 100 + 50 * (i % 2)));
  for (QueueEntry* entry : pushed) {
    EXPECT_EQ(queue_.next(kAny), entry);
    queue_.start(*entry);
    EXPECT_FALSE(entry->waits());
  }
}

TEST_F(FairQueueTest, TenantsTakeTurnsByTheirWork) {
  for (int i = 0; i < 6; ++i) push("a", 100);
  for (int i = 0; i < 3; ++i) push("b", 200);
  EXPECT_EQ(started(9), "ababaabaa");
}

TEST_F(FairQueueTest, ALateTenantDoesNotWaitBehindAFlood) {
  for (int i = 0; i < 100; ++i) push("a");
  EXPECT_EQ(started(10), "aaaaaaaaaa");
  push("b");
  EXPECT_EQ(started(3), "aba");
}

TEST_F(FairQueueTest, NobodySavesUpTurns) {
  for (int i = 0; i < 40; ++i) push("a");
  push("b");
  EXPECT_EQ(started(20).find('b'), 1U);
  for (int i = 0; i < 5; ++i) push("b");
  EXPECT_EQ(started(6), "ababab") << "level with a, not twenty turns before it";
}

TEST_F(FairQueueTest, NobodyPaysForWorkThatNobodyElseWanted) {
  for (int i = 0; i < 100; ++i) queue_.charge("a", Priority::kNormal, 1000);
  push("b");
  push("a");
  push("b");
  EXPECT_EQ(started(3), "bab");
}

TEST_F(FairQueueTest, WhatRanWithoutWaitingIsChargedToo) {
  for (int i = 0; i < 4; ++i) push("a");
  push("b");
  queue_.charge("b", Priority::kNormal, 200);
  EXPECT_EQ(started(5), "aabaa") << "b has had two turns already";
}

TEST_F(FairQueueTest, ATenantThatNeedsMoreThanItSaidWaitsForTheOthers) {
  QueueEntry& first = push("a");
  for (int i = 0; i < 5; ++i) push("a");
  for (int i = 0; i < 6; ++i) push("b");
  EXPECT_EQ(started(2), "ab");
  queue_.settle("a", Priority::kNormal, first.charged, 400);
  EXPECT_EQ(started(4), "bbba");
}

TEST_F(FairQueueTest, ATenantThatNeedsLessGetsTheRestBack) {
  QueueEntry& first = push("a", 400);
  for (int i = 0; i < 6; ++i) push("b");
  for (int i = 0; i < 6; ++i) push("a");
  EXPECT_EQ(started(3), "abb");
  queue_.settle("a", Priority::kNormal, first.charged, 100);
  EXPECT_EQ(started(3), "aba");
}

TEST_F(FairQueueTest, WhatWasChargedBeforeAnybodyWaitedIsSettledWithNobody) {
  const Charge free = queue_.charge("a", Priority::kNormal, 1000);
  push("a");
  push("b");
  push("a");
  queue_.settle("a", Priority::kNormal, free, 0);
  EXPECT_EQ(started(3), "aba") << "a got nothing back";
  push("a");
  push("b");
  queue_.settle("a", Priority::kNormal, free, 5000);
  EXPECT_EQ(started(2), "ab") << "and pays nothing";
}

TEST_F(FairQueueTest, WhatWasTooLittleIsPaidByOneThatLeftMeanwhile) {
  QueueEntry& first = push("a");
  for (int i = 0; i < 9; ++i) push("b");
  EXPECT_EQ(started(4), "abbb");
  push("a");
  queue_.settle("a", Priority::kNormal, first.charged, 500);
  EXPECT_EQ(started(5), "bbbba");
}

TEST_F(FairQueueTest, HighGoesBeforeNormal) {
  push("n");
  push("h", 100, Priority::kHigh);
  push("n");
  push("h", 100, Priority::kHigh);
  EXPECT_EQ(started(4), "hhnn");
}

TEST_F(FairQueueTest, LowKeepsATenthOfTheWorkWhileOthersWait) {
  for (int i = 0; i < 200; ++i) push("h", 100, Priority::kHigh);
  for (int i = 0; i < 50; ++i) push("l", 300, Priority::kLow);
  const std::string tenants = started(150);
  const auto low = 300.0 * static_cast<double>(std::ranges::count(tenants, 'l'));
  const auto high = 100.0 * static_cast<double>(std::ranges::count(tenants, 'h'));
  EXPECT_NEAR(low / (low + high), 0.1, 0.02);
}

TEST_F(FairQueueTest, LowGetsAllThatNobodyElseWants) {
  for (int i = 0; i < 3; ++i) push("l", 100, Priority::kLow);
  EXPECT_EQ(started(3), "lll");
}

TEST_F(FairQueueTest, LowThatComesOneByOneHasNoMoreThanItsTenth) {
  for (int i = 0; i < 200; ++i) push("h", 100, Priority::kHigh);
  int low = 0;
  for (int i = 0; i < 100; ++i) {
    QueueEntry& entry = push("l", 100, Priority::kLow);
    low += started(1) == "l" ? 1 : 0;
    if (entry.waits()) queue_.remove(entry);
  }
  EXPECT_LE(low, 10);
}

TEST_F(FairQueueTest, OneThatFitsNowhereHoldsUpNoOther) {
  QueueEntry& stuck = push("a");
  QueueEntry& other = push("a");
  const auto fits = [&stuck](const QueueEntry& entry) { return &entry != &stuck; };
  EXPECT_EQ(queue_.next(fits), &other);
}

TEST_F(FairQueueTest, ATenantWhoseRequestsFitNowhereHoldsUpNoOther) {
  for (int i = 0; i < 100; ++i) push("a", 1);
  QueueEntry& other = push("b");
  const auto fits = [](const QueueEntry& entry) { return entry.tenant == "b"; };
  EXPECT_EQ(queue_.next(fits), &other);
}

TEST_F(FairQueueTest, LooksAtSixtyFourOfAPriorityAtMost) {
  for (int i = 0; i < 20; ++i) {
    for (const char* tenant : {"a", "b", "c", "d", "e"}) push(tenant);
  }
  push("l", 100, Priority::kLow);
  int looks = 0;
  EXPECT_EQ(queue_.next([&looks](const QueueEntry&) { return ++looks > 100; }), nullptr);
  EXPECT_EQ(looks, 65);
}

TEST_F(FairQueueTest, KnowsAllThatWaitOfWhateverTenantAndPriority) {
  std::set<const QueueEntry*> waiting{&push("a"), &push("a", 100, Priority::kLow), &push("b")};
  queue_.for_each([&](const QueueEntry& entry) { EXPECT_EQ(waiting.erase(&entry), 1U); });
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(queue_.size(), 3U);
}

TEST_F(FairQueueTest, BeforeANewcomerGoWhoeverBeginsNoLater) {
  for (int i = 0; i < 10; ++i) push("a", 100);
  EXPECT_EQ(queue_.work_before("a", Priority::kNormal), 1000U);
  EXPECT_EQ(queue_.work_before("b", Priority::kNormal), 100U) << "one of a's, that was first";
  push("b", 300);
  EXPECT_EQ(queue_.work_before("b", Priority::kNormal), 300U + 300U);
  EXPECT_EQ(queue_.work_before("b", Priority::kHigh), 0U);
  EXPECT_EQ(queue_.work_before("c", Priority::kLow), 0U) << "low is owed nothing, and has nobody";
}

TEST_F(FairQueueTest, AFloodIsToldThatOthersWillOvertakeIt) {
  for (int i = 0; i < 300; ++i) {
    push("flood");
    push("b");  // one at a time: it never waits for long
    started(2);
  }
  for (int i = 0; i < 50; ++i) push("flood");
  for (int i = 0; i < 100; ++i) {
    push("flood");
    push("b");
    started(2);
  }
  EXPECT_NEAR(static_cast<double>(queue_.work_before("flood", Priority::kNormal)), 10'000, 500)
      << "its own fifty, and one of b's for each of them";
  EXPECT_LE(queue_.work_before("b", Priority::kNormal), 100U);
}

TEST_F(FairQueueTest, BeforeLowGoNoMoreThanTenTimesItsOwn) {
  for (int i = 0; i < 100; ++i) push("h", 100, Priority::kHigh);
  push("l", 100, Priority::kLow);
  EXPECT_EQ(queue_.work_before("l", Priority::kLow), 1000U);
  for (int i = 0; i < 20; ++i) push("l", 100, Priority::kLow);
  EXPECT_EQ(queue_.work_before("l", Priority::kLow), 10'000U + 2100U);
}

TEST_F(FairQueueTest, ATenantThatLeftAndOwesNothingIsForgotten) {
  for (int i = 0; i < 1000; ++i) {
    QueueEntry& entry = push("tenant-" + std::to_string(i));
    queue_.remove(entry);
  }
  push("a");
  EXPECT_EQ(started(1), "a");
}

}  // namespace
}  // namespace penstock::admission
