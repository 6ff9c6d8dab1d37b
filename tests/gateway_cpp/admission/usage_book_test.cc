#include "admission/usage_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace penstock::admission {
namespace {

constexpr UsageCounts kOne{.requests = 1, .prompt_tokens = 10, .completion_tokens = 5};

TEST(UsageBook, AddsUpForEachKeyAndModel) {
  UsageBook book;
  book.add("acme", "key-1", "mini", "", kOne);
  book.add("acme", "key-1", "mini", "", {.requests = 1, .prompt_tokens = 7, .cached_tokens = 6});
  book.add("acme", "key-1", "mini", "pirate@1", kOne);
  book.add("acme", "key-2", "mini", "", {.rejected = 1});
  const std::vector<UsageRow> rows = book.totals();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].key, (UsageKey{"acme", "key-1", "mini", ""}));
  EXPECT_EQ(rows[0].counts,
            (UsageCounts{
                .requests = 2, .prompt_tokens = 17, .completion_tokens = 5, .cached_tokens = 6}));
  EXPECT_EQ(rows[1].key.adapter, "pirate@1");
  EXPECT_EQ(rows[2].counts.rejected, 1U);
}

TEST(UsageBook, KnowsRequestsWithoutAKey) {
  UsageBook book;
  book.add("", "", "mini", "", kOne);
  ASSERT_EQ(book.totals().size(), 1U);
  EXPECT_EQ(book.totals()[0].key.tenant, "");
}

TEST(UsageBook, ATenantsSumStaysRightWhenItIsFull) {
  UsageBook book;
  for (std::size_t i = 0; i < UsageBook::kMostRows + 500; ++i) {
    book.add("acme", "key-" + std::to_string(i), "mini", "", kOne);
  }
  book.add("acme", "key-0", "mini", "", kOne);
  const std::vector<UsageRow> rows = book.totals();
  EXPECT_EQ(rows.size(), UsageBook::kMostRows + 1);
  std::uint64_t requests = 0;
  for (const UsageRow& row : rows) requests += row.counts.requests;
  EXPECT_EQ(requests, UsageBook::kMostRows + 501);
  const auto rest = std::ranges::find(rows, UsageKey{"acme", "", "", ""}, &UsageRow::key);
  ASSERT_NE(rest, rows.end());
  EXPECT_EQ(rest->counts.requests, 500U);
}

TEST(UsageBook, LosesNothingAcrossThreads) {
  UsageBook book;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&book, i] {
      for (int j = 0; j < 2000; ++j) {
        book.add("acme", "key-" + std::to_string((i + j) % 3), "mini", "", kOne);
        if (j % 500 == 0) book.totals();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<UsageRow> rows = book.totals();
  ASSERT_EQ(rows.size(), 3U);
  const auto tokens = std::accumulate(
      rows.begin(), rows.end(), std::uint64_t{0}, [](std::uint64_t sum, const UsageRow& row) {
        return sum + row.counts.prompt_tokens + row.counts.completion_tokens;
      });
  EXPECT_EQ(tokens, 4U * 2000 * 15);
}

}  // namespace
}  // namespace penstock::admission
