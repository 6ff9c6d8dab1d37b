#include "admission/usage_book.h"

namespace penstock::admission {

UsageBook::View UsageBook::Before::view(const UsageKey& key) {
  return {key.tenant, key.key_id, key.deployment, key.adapter};
}

void UsageBook::add(std::string_view tenant, std::string_view key_id, std::string_view deployment,
                    std::string_view adapter, const UsageCounts& more) {
  View key{tenant, key_id, deployment, adapter};
  const std::lock_guard lock(mutex_);
  auto row = rows_.find(key);
  if (row == rows_.end() && rows_.size() >= kMostRows) {
    key = View{tenant, {}, {}, {}};
    row = rows_.find(key);
  }
  if (row == rows_.end()) {
    row = rows_
              .emplace(UsageKey{std::string(key.tenant), std::string(key.key_id),
                                std::string(key.deployment), std::string(key.adapter)},
                       UsageCounts{})
              .first;
  }
  row->second += more;
}

std::vector<UsageRow> UsageBook::totals() const {
  const std::lock_guard lock(mutex_);
  std::vector<UsageRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, counts] : rows_) rows.push_back({key, counts});
  return rows;
}

std::map<std::string, UsageCounts> UsageBook::by_tenant() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, UsageCounts> sums;
  for (const auto& [key, counts] : rows_) sums[key.tenant] += counts;
  return sums;
}

}  // namespace penstock::admission
