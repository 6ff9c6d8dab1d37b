#include "admission/usage_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace penstock::admission {
namespace {

constexpr UsageCounts kOneRequest{.requests = 1, .prompt_tokens = 10, .completion_tokens = 5};

TEST(UsageBook, AddsUpForEachKeyAndModel) {
  UsageBook book;
  book.add("acme", "key-1", "mini", "", kOneRequest);
  book.add("acme", "key-1", "mini", "", {.requests = 1, .prompt_tokens = 7, .cached_tokens = 6});
  book.add("acme", "key-1", "mini", "pirate@1", kOneRequest);
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
  book.add("", "", "mini", "", kOneRequest);
  ASSERT_EQ(book.totals().size(), 1U);
  EXPECT_EQ(book.totals()[0].key.tenant, "");
}

TEST(UsageBook, SumsOfTenantsAndDeploymentsStayRightWhenItIsFull) {
  UsageBook book;
  for (std::size_t i = 0; i < UsageBook::kMostRows + 500; ++i) {
    book.add("acme", "key-" + std::to_string(i), i % 2 == 0 ? "mini" : "big", "", kOneRequest);
  }
  book.add("acme", "key-0", "mini", "", kOneRequest);
  const std::vector<UsageRow> rows = book.totals();
  EXPECT_EQ(rows.size(), UsageBook::kMostRows + 2);
  std::map<std::string, std::uint64_t> requests;
  for (const UsageRow& row : rows) requests[row.key.deployment] += row.counts.requests;
  EXPECT_EQ(requests["mini"], UsageBook::kMostRows / 2 + 251);
  EXPECT_EQ(requests["big"], UsageBook::kMostRows / 2 + 250);
  const auto rest = std::ranges::find(rows, UsageKey{"acme", "", "mini", ""}, &UsageRow::key);
  ASSERT_NE(rest, rows.end());
  EXPECT_EQ(rest->counts.requests, 250U);
}

TEST(UsageBook, AKeyWithLimitsOfADayKeepsItsNameHoweverManyRowsThereAre) {
  UsageBook book;
  for (std::size_t i = 0; i < UsageBook::kMostRows; ++i) {
    book.add("acme", "key-" + std::to_string(i), "mini", "", kOneRequest);
  }
  book.add("acme", "limited", "mini", "pirate@1", kOneRequest, KeyLimits::kOfTheDay);
  book.add("acme", "limited", "mini", "pirate@2", kOneRequest, KeyLimits::kOfTheDay);
  const std::vector<UsageRow> rows = book.totals();
  EXPECT_EQ(rows.size(), UsageBook::kMostRows + 1);
  const auto row = std::ranges::find(rows, UsageKey{"acme", "limited", "mini", ""}, &UsageRow::key);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->counts.requests, 2U);
}

TEST(UsageBook, HasNewsOfWhatIsNotStoredYet) {
  UsageBook book;
  book.add("acme", "key-1", "mini", "", kOneRequest);
  book.add("acme", "key-2", "mini", "", kOneRequest);
  const UsageNews first = book.news();
  EXPECT_EQ(first.rows.size(), 2U);
  book.add("acme", "key-2", "mini", "", kOneRequest);
  EXPECT_EQ(book.news().rows.size(), 2U) << "the first report may be lost";
  book.stored(first.number);
  const UsageNews later = book.news();
  ASSERT_EQ(later.rows.size(), 1U);
  EXPECT_EQ(later.rows[0].key.key_id, "key-2");
  EXPECT_EQ(later.rows[0].counts.requests, 2U);
  book.stored(later.number);
  EXPECT_TRUE(book.news().rows.empty());
}

TEST(UsageBook, TellsAllToAHeadThatBeginsToListenWhateverAnotherHasStored) {
  UsageBook book;
  book.add("acme", "key-1", "mini", "", kOneRequest);
  book.stored(book.news().number);
  const UsageNews little = book.news();
  book.tell_all();
  book.stored(little.number);
  const UsageNews all = book.news();
  EXPECT_EQ(all.rows.size(), 1U);
  book.stored(all.number);
  EXPECT_TRUE(book.news().rows.empty());
  book.stored(all.number + 100);
  EXPECT_TRUE(book.news().rows.empty()) << "of another instance";
}

TEST(UsageBook, LosesNothingAcrossThreads) {
  UsageBook book;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&book, i] {
      for (int j = 0; j < 2000; ++j) {
        book.add("acme", "key-" + std::to_string((i + j) % 3), "mini", "", kOneRequest);
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
