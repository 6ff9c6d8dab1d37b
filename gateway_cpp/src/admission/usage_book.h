// What each key of a tenant cost on each model since this process began; the head makes days of it.
// Any thread; a short lock for each call.
//
// Bounded: past kMostRows, what has no row of its own yet is counted in one row of its tenant
// without key, deployment and adapter, so that a tenant's sum stays right. Tenants are bounded by
// the snapshots that name them.
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

class UsageBook {
 public:
  static constexpr std::size_t kMostRows = 10'000;

  void add(std::string_view tenant, std::string_view key_id, std::string_view deployment,
           std::string_view adapter, const UsageCounts& more);
  std::vector<UsageRow> totals() const;  // since the book began, sorted
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

  mutable std::mutex mutex_;  // guards rows_
  std::map<UsageKey, UsageCounts, Before> rows_;
  DayLedger day_;
};

}  // namespace penstock::admission
