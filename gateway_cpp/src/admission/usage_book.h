// What each key of a tenant cost on each model since this process began; the head makes days of it.
// Any thread; a short lock for each call.
//
// Bounded: past kMostRows, what has no row of its own yet is counted in one row of its tenant and
// deployment without adapter, and without key, so that the sums of both stay right. A key with
// limits of a day keeps its name, so that they hold however many rows there are. So rows are
// bounded by the snapshots that name tenants, deployments, and keys with limits.
//
// The head is told the rows that it has not stored yet: it says which report was stored last, and
// all rows go to a head that begins to listen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admission/day_ledger.h"
#include "admission/usage_counts.h"

namespace penstock::admission {

struct UsageKey {
  std::string tenant;  // empty: requests without a key
  std::string key_id;
  std::string deployment;
  std::string adapter;  // "name@version"; empty: the base model
  auto operator<=>(const UsageKey&) const = default;
};

struct UsageRow {
  UsageKey key;
  UsageCounts counts;
};

// What one report has.
struct UsageNews {
  std::uint64_t number = 0;  // from 1
  std::vector<UsageRow> rows;
};

enum class KeyLimits : std::uint8_t { kNone, kOfTheDay };

class UsageBook {
 public:
  static constexpr std::size_t kMostRows = 10'000;

  void add(std::string_view tenant, std::string_view key_id, std::string_view deployment,
           std::string_view adapter, const UsageCounts& more, KeyLimits limits = KeyLimits::kNone);
  std::vector<UsageRow> totals() const;  // since the book began, sorted
  // The next report: rows that have changed since the one that was stored last.
  UsageNews news();
  // The head has stored the report of this number.
  void stored(std::uint64_t number);
  // The head may be another one: the next report has all rows.
  void tell_all();
  std::map<std::string, UsageCounts> by_tenant() const;

  // Of today, with what other gateways counted.
  DayLedger& day() { return day_; }
  const DayLedger& day() const { return day_; }

 private:
  // A key that is looked up without being copied.
  struct View {
    std::string_view tenant, key_id, deployment, adapter;
    auto operator<=>(const View&) const = default;
  };
  struct Before {
    using is_transparent = void;
    static View view(const UsageKey& key);
    static const View& view(const View& key) { return key; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return view(a) < view(b);
    }
  };

  struct Row {
    UsageCounts counts;
    std::uint64_t changed = 0;  // the first report that has it so
  };

  mutable std::mutex mutex_;  // guards all below
  std::map<UsageKey, Row, Before> rows_;
  std::uint64_t next_ = 1;      // report
  std::uint64_t stored_ = 0;    // report
  std::uint64_t all_from_ = 0;  // the report that has, or will have, all rows
  DayLedger day_;
};

}  // namespace penstock::admission
