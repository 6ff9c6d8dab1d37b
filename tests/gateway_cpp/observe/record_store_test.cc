#include "observe/record_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "observe/record_tail.h"

namespace penstock::observe {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::size_t kBudget = 64UL << 10U;

std::string bytes_of(const std::string& id, const std::string& deployment = "mini",
                     const std::string& client_id = {}, const std::string& trace_id = {}) {
  v1::RequestRecord record;
  record.set_request_id(id);
  record.set_client_request_id(client_id);
  record.set_trace_id(trace_id);
  record.add_stays()->set_deployment(deployment);
  return record.SerializeAsString();
}

std::string id_of(const std::string& bytes) {
  v1::RequestRecord record;
  EXPECT_TRUE(record.ParseFromString(bytes));
  return record.request_id();
}

std::vector<std::string> ids_of(const std::vector<std::string>& records) {
  std::vector<std::string> ids;
  ids.reserve(records.size());
  for (const std::string& bytes : records) ids.push_back(id_of(bytes));
  return ids;
}

class RecordStoreTest : public testing::Test {
 protected:
  void end(const std::string& tenant, const std::string& id, std::uint64_t at_us,
           base::Outcome outcome = base::Outcome::kSucceeded, std::uint64_t took_us = 1000) {
    const bool well = outcome == base::Outcome::kSucceeded;
    store_.take({.tenant = tenant,
                 .outcome = outcome,
                 .status = well ? 200U : 503U,
                 .received_us = at_us,
                 .duration_us = took_us},
                bytes_of(id));
  }
  void flood(const std::string& tenant, int count, base::Outcome outcome) {
    for (int i = 0; i < count; ++i) {
      end(tenant, tenant + "-" + std::to_string(i), (100 + static_cast<std::uint64_t>(i)) * kSecond,
          outcome);
    }
  }
  std::size_t count(const std::string& tenant) {
    v1::RequestFilter filter;
    filter.set_tenant(tenant);
    filter.set_limit(1000);
    return store_.list(filter).size();
  }
  std::uint64_t kept(RecordKind kind) {
    return store_.totals().records[static_cast<std::size_t>(kind)];
  }

  RecordStore store_{kBudget};
};

TEST_F(RecordStoreTest, ListsTheNewestFirstWheneverTheyEnded) {
  end("acme", "late", 9 * kSecond);
  end("acme", "long", 1 * kSecond, base::Outcome::kSucceeded, 60 * kSecond);
  end("acme", "middle", 5 * kSecond);
  v1::RequestFilter filter;
  EXPECT_EQ(ids_of(store_.list(filter)), (std::vector<std::string>{"late", "middle", "long"}));
  filter.set_limit(2);
  EXPECT_EQ(ids_of(store_.list(filter)), (std::vector<std::string>{"late", "middle"}));
  filter.set_before_us(5 * kSecond);
  EXPECT_EQ(ids_of(store_.list(filter)), std::vector<std::string>{"long"});
}

TEST_F(RecordStoreTest, LooksAsFarBackAsThereMayBeOneThatIsAskedFor) {
  for (std::uint64_t i = 1; i <= 50; ++i) end("acme", "early-" + std::to_string(i), i * kSecond);
  end("acme", "long", 2 * kSecond, base::Outcome::kSucceeded, 58 * kSecond);
  for (std::uint64_t i = 61; i <= 90; ++i) end("acme", "late-" + std::to_string(i), i * kSecond);
  v1::RequestFilter filter;
  filter.set_since_us(50 * kSecond);
  auto ids = ids_of(store_.list(filter));
  ASSERT_EQ(ids.size(), 31U);
  EXPECT_EQ(ids.back(), "early-50");
  filter.set_since_us(2 * kSecond);
  filter.set_limit(1000);
  ids = ids_of(store_.list(filter));
  EXPECT_EQ(ids.size(), 80U);
  EXPECT_EQ(ids.back(), "early-2");
}

TEST_F(RecordStoreTest, SaysSinceWhenItHasForgottenNothingWhosever) {
  using std::chrono::seconds;
  RecordStore store(kBudget, base::WallTime(seconds(5)));
  EXPECT_EQ(store.kept_since_us(), 5 * kSecond);
  store.take({.tenant = "quiet", .received_us = 6 * kSecond}, bytes_of("old"));
  std::uint64_t at_us = 7 * kSecond;
  for (int i = 0; i < 500; ++i, at_us += kSecond) {
    store.take({.tenant = "flood", .received_us = at_us}, bytes_of("req_" + std::to_string(i)));
  }
  v1::RequestFilter filter;
  filter.set_limit(1000);
  filter.set_since_us(store.kept_since_us());
  const std::size_t since = store.list(filter).size();
  EXPECT_EQ(since, (at_us - store.kept_since_us()) / kSecond);
  EXPECT_EQ(store.totals().records[static_cast<std::size_t>(RecordKind::kOrdinary)], since + 1)
      << "and what is older";
}

TEST_F(RecordStoreTest, ListsThoseOfOneMicrosecondByTheirIdsWhicheverItHasToLeaveOut) {
  for (const char* id : {"b", "d", "a", "c"}) end("acme", id, 5 * kSecond);
  end("acme", "old", 4 * kSecond);
  v1::RequestFilter filter;
  EXPECT_EQ(ids_of(store_.list(filter)), (std::vector<std::string>{"d", "c", "b", "a", "old"}));
  filter.set_limit(3);
  EXPECT_EQ(ids_of(store_.list(filter)), (std::vector<std::string>{"d", "c", "b"}));
}

TEST_F(RecordStoreTest, FindsByOurIdAndByItsClients) {
  store_.take({.tenant = "acme"}, bytes_of("req_1", "mini", "theirs"));
  store_.take({.tenant = "acme"}, bytes_of("req_2", "mini", "theirs"));
  store_.take({.tenant = "acme"}, bytes_of("req_3", "mini", std::string(128, 'x')));
  store_.take({.tenant = "acme"}, bytes_of("req_4", "mini", {}, "\x4b\xf9\x2f\x35zzzzzzzzzzzz"));
  EXPECT_EQ(ids_of(store_.find("req_1")), std::vector<std::string>{"req_1"});
  EXPECT_EQ(ids_of(store_.find("theirs")), (std::vector<std::string>{"req_2", "req_1"}));
  EXPECT_EQ(ids_of(store_.find(std::string(200, 'x'))), std::vector<std::string>{"req_3"})
      << "a record has so much of it";
  EXPECT_EQ(ids_of(store_.find("4bf92f357a7a7a7a7a7a7a7a7a7a7a7a")),
            std::vector<std::string>{"req_4"});
  EXPECT_TRUE(store_.find("4bf92f357a7a7a7a7a7a7a7a7a7a7a7x").empty());
  EXPECT_TRUE(store_.find("req_5").empty());
  EXPECT_TRUE(store_.find("").empty());
}

TEST_F(RecordStoreTest, FindsTheOneThatItCalledSoHoweverManyClientsCallTheirsSo) {
  store_.take({.tenant = "acme"}, bytes_of("req_1"));
  for (int i = 0; i < 120; ++i) {
    store_.take({.tenant = "evil"}, bytes_of("evil-" + std::to_string(i), "mini", "req_1"));
  }
  const auto ids = ids_of(store_.find("req_1"));
  EXPECT_EQ(ids.front(), "req_1");
  EXPECT_EQ(ids.at(1), "evil-119");
  EXPECT_GE(ids.size(), 100U);
}

TEST_F(RecordStoreTest, KeepsOneTenantToAQuarterOfItsBudget) {
  flood("acme", 2000, base::Outcome::kSucceeded);
  EXPECT_LE(store_.totals().bytes, kBudget / 4);
  EXPECT_GT(store_.totals().bytes, kBudget / 5);
  EXPECT_GT(store_.totals().dropped[static_cast<std::size_t>(RecordDrop::kTenantShare)], 0U);
  EXPECT_EQ(store_.totals().dropped[static_cast<std::size_t>(RecordDrop::kBudget)], 0U);
}

TEST_F(RecordStoreTest, LetsNoFloodPushOutWhatIsOthers) {
  for (int i = 0; i < 20; ++i) end("quiet", "q" + std::to_string(i), 1 * kSecond);
  for (int i = 0; i < 9; ++i) {
    flood("flood-" + std::to_string(i), 500, base::Outcome::kRejected);
  }
  EXPECT_EQ(count("quiet"), 20U);
  EXPECT_LE(store_.totals().bytes, kBudget);
  EXPECT_GT(store_.totals().dropped[static_cast<std::size_t>(RecordDrop::kBudget)], 0U);
}

TEST_F(RecordStoreTest, KeepsErrorsRefusalsAndSlowOnesLongest) {
  end("acme", "failed", 1 * kSecond, base::Outcome::kFailed);
  end("acme", "refused", 1 * kSecond, base::Outcome::kRejected);
  end("acme", "slow", 1 * kSecond, base::Outcome::kSucceeded, 11 * kSecond);
  flood("acme", 2000, base::Outcome::kSucceeded);
  EXPECT_EQ(kept(RecordKind::kError), 1U);
  EXPECT_EQ(kept(RecordKind::kRefusal), 1U);
  EXPECT_EQ(kept(RecordKind::kSlow), 1U);
  EXPECT_EQ(store_.find("failed").size(), 1U);
}

TEST_F(RecordStoreTest, LeavesOrdinaryOnesAQuarterAndNoKindPushesOutASmallerOne) {
  flood("acme", 500, base::Outcome::kSucceeded);
  end("acme", "failed", 1 * kSecond, base::Outcome::kFailed);
  flood("acme", 2000, base::Outcome::kRejected);
  const std::uint64_t ordinary = kept(RecordKind::kOrdinary);
  EXPECT_GE(ordinary * 5, kept(RecordKind::kRefusal));
  EXPECT_EQ(kept(RecordKind::kError), 1U);
}

TEST_F(RecordStoreTest, CountsNoneAsDroppedThatWasKeptForAnHour) {
  flood("acme", 100, base::Outcome::kSucceeded);
  RecordStore store(kBudget);
  std::uint64_t at_us = 1;
  for (int i = 0; i < 1000; ++i, at_us += 3600 * kSecond) {
    store.take({.tenant = "acme", .received_us = at_us}, bytes_of("req_" + std::to_string(i)));
  }
  EXPECT_EQ(store.totals().dropped[static_cast<std::size_t>(RecordDrop::kTenantShare)], 0U);
  EXPECT_LE(store.totals().bytes, kBudget / 4);
}

TEST_F(RecordStoreTest, KeepsNothingWithoutABudget) {
  RecordStore none(0);
  none.take({.tenant = "acme"}, bytes_of("req_1"));
  EXPECT_EQ(none.totals().bytes, 0U);
  EXPECT_EQ(none.kept_since_us(), 0U);
}

TEST_F(RecordStoreTest, FiltersByWhatIsBesideTheBytesAndByWhatIsInThem) {
  store_.take({.tenant = "acme", .status = 404, .received_us = 5, .duration_us = 2'000'000},
              bytes_of("a", "mini"));
  v1::RequestRecord moved;
  moved.set_request_id("b");
  moved.set_degraded("queue_full");
  moved.set_asked("mini");
  moved.add_stays()->set_deployment("next");
  moved.add_stays()->set_deployment("big");
  store_.take({.tenant = "blue", .status = 200, .received_us = 6, .duration_us = 1000},
              moved.SerializeAsString());
  const auto ids = [this](const std::function<void(v1::RequestFilter&)>& set) {
    v1::RequestFilter filter;
    set(filter);
    return ids_of(store_.list(filter));
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids([](auto& f) { f.set_deployment("mini"); }), (Ids{"b", "a"}));
  EXPECT_EQ(ids([](auto& f) { f.set_deployment("big"); }), Ids{"b"});
  EXPECT_EQ(ids([](auto& f) { f.set_tenant("acme"); }), Ids{"a"});
  EXPECT_EQ(ids([](auto& f) { f.set_status(404); }), Ids{"a"});
  EXPECT_EQ(ids([](auto& f) { f.set_status(4); }), Ids{"a"});
  EXPECT_EQ(ids([](auto& f) { f.set_status(5); }), Ids{});
  EXPECT_EQ(ids([](auto& f) { f.set_reason("queue_full"); }), Ids{"b"});
  EXPECT_EQ(ids([](auto& f) { f.set_slower_than_ms(1999); }), Ids{"a"});
  EXPECT_EQ(ids([](auto& f) { f.set_slower_than_ms(2000); }), Ids{});
  EXPECT_EQ(ids([](auto& f) { f.set_since_us(6); }), Ids{"b"});
}

TEST_F(RecordStoreTest, TellsATailOfWhatEndsAndOfWhatIsLeftOut) {
  v1::RequestFilter filter;
  filter.set_tenant("acme");
  std::atomic<int> woken = 0;
  auto tail = store_.tail(filter, [&woken] { ++woken; });
  end("acme", "a", 1);
  end("blue", "b", 2);
  end("acme", "c", 3);
  EXPECT_EQ(woken, 2);
  auto news = tail->take();
  EXPECT_EQ(ids_of({news.records.begin(), news.records.end()}),
            (std::vector<std::string>{"a", "c"}));
  const std::size_t many = (1UL << 20U) / bytes_of("acme-1000").size() + 10;
  flood("acme", static_cast<int>(many), base::Outcome::kSucceeded);
  news = tail->take();
  EXPECT_GT(news.left_out, 0U);
  EXPECT_EQ(news.left_out + news.records.size(), many);
  tail.reset();
  end("acme", "d", 4);
  EXPECT_EQ(woken, static_cast<int>(2 + news.records.size())) << "nobody is woken who has left";
}

TEST_F(RecordStoreTest, TellsATailAndCountsWhatIsLargerThanATenantsShare) {
  RecordStore tiny(256);
  auto tail = tiny.tail({}, [] {});
  tiny.take({.tenant = "acme", .received_us = 8}, bytes_of("req_1"));
  EXPECT_EQ(tail->take().records.size(), 1U);
  EXPECT_EQ(tiny.totals().dropped[static_cast<std::size_t>(RecordDrop::kTenantShare)], 1U);
  EXPECT_EQ(tiny.kept_since_us(), 9U);
}

// Whoever searches holds up no request, and sees whole records, whatever is given up meanwhile.
TEST_F(RecordStoreTest, IsSearchedWhileRequestsEnd) {
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this, t] {
      for (int round = 0; round < 5; ++round) {
        flood("tenant-" + std::to_string(t), 1000, base::Outcome::kSucceeded);
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) {
      v1::RequestFilter filter;
      filter.set_deployment("mini");
      for (const std::string& bytes : store_.list(filter)) EXPECT_FALSE(id_of(bytes).empty());
      store_.find("tenant-0-999");
    }
  });
  threads[0].join();
  threads[1].join();
  over = true;
  threads[2].join();
  EXPECT_LE(store_.totals().bytes, kBudget / 2);
}

}  // namespace
}  // namespace penstock::observe
