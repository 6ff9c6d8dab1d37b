// What tenants and their keys have had on this day of UTC, at all gateways together, as the head
// told it last. It stands when the head is away. Any thread; a short lock for each call.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admission/usage_counts.h"
#include "base/clock.h"

namespace penstock::admission {

// What one key of a tenant has had.
struct DaySum {
  std::string tenant;  // empty: requests without a key
  std::string key_id;
  UsageCounts counts;
};

// What the head tells.
struct DayNews {
  base::WallTime as_of{};
  base::WallTime ends_at{};       // midnight UTC
  bool whole = false;             // what was told before is no more
  std::vector<DaySum> sums = {};  // what is not here has not changed
};

// How a key and its tenant stand.
struct DayStanding {
  base::WallTime as_of{};  // the epoch: nothing was told yet
  base::WallTime ends_at{};
  UsageCounts key;
  UsageCounts tenant;  // with all of its keys
};

class DayLedger {
 public:
  void hear(const DayNews& news);
  // Of the day that now is: nothing is counted before the head has told of it.
  DayStanding standing(std::string_view tenant, std::string_view key_id, base::WallTime now) const;

 private:
  struct Tenant {
    UsageCounts sum;
    std::map<std::string, UsageCounts, std::less<>> keys;
  };

  mutable std::mutex mutex_;  // guards all below
  base::WallTime as_of_{};
  base::WallTime ends_at_{};
  std::map<std::string, Tenant, std::less<>> tenants_;
};

}  // namespace penstock::admission
