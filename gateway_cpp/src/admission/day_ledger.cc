#include "admission/day_ledger.h"

#include <chrono>

namespace penstock::admission {

void DayLedger::hear(const DayNews& news) {
  const std::lock_guard lock(mutex_);
  if (news.whole || news.ends_at != ends_at_) tenants_.clear();
  as_of_ = news.as_of;
  ends_at_ = news.ends_at;
  for (const DaySum& told : news.sums) {
    Tenant& tenant = tenants_[told.tenant];
    UsageCounts& key = tenant.keys[told.key_id];
    tenant.sum -= key;
    tenant.sum += told.counts;
    key = told.counts;
  }
}

DayStanding DayLedger::standing(std::string_view tenant, std::string_view key_id,
                                base::WallTime now) const {
  const std::lock_guard lock(mutex_);
  if (now >= ends_at_) {
    const auto today = std::chrono::floor<std::chrono::days>(now);
    return {.as_of = as_of_, .ends_at = today + std::chrono::days(1), .key = {}, .tenant = {}};
  }
  DayStanding found{.as_of = as_of_, .ends_at = ends_at_, .key = {}, .tenant = {}};
  const auto known = tenants_.find(tenant);
  if (known == tenants_.end()) return found;
  found.tenant = known->second.sum;
  const auto key = known->second.keys.find(key_id);
  if (key != known->second.keys.end()) found.key = key->second;
  return found;
}

}  // namespace penstock::admission
