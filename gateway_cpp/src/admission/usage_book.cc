#include "admission/usage_book.h"

namespace penstock::admission {

UsageBook::View UsageBook::Before::view(const UsageKey& key) {
  return {key.tenant, key.key_id, key.deployment, key.adapter};
}

void UsageBook::add(std::string_view tenant, std::string_view key_id, std::string_view deployment,
                    std::string_view adapter, const UsageCounts& more, KeyLimits limits) {
  View key{tenant, key_id, deployment, adapter};
  const std::lock_guard lock(mutex_);
  auto row = rows_.find(key);
  if (row == rows_.end() && rows_.size() >= kMostRows) {
    key = View{tenant, limits == KeyLimits::kNone ? std::string_view() : key_id, deployment, {}};
    row = rows_.find(key);
  }
  if (row == rows_.end()) {
    row = rows_
              .emplace(UsageKey{std::string(key.tenant), std::string(key.key_id),
                                std::string(key.deployment), std::string(key.adapter)},
                       Row{})
              .first;
  }
  row->second.counts += more;
  row->second.changed = next_;
}

std::vector<UsageRow> UsageBook::totals() const {
  const std::lock_guard lock(mutex_);
  std::vector<UsageRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back({key, row.counts});
  return rows;
}

UsageNews UsageBook::news() {
  const std::lock_guard lock(mutex_);
  UsageNews news{.number = next_++, .rows = {}};
  for (const auto& [key, row] : rows_) {
    if (row.changed > stored_) news.rows.push_back({key, row.counts});
  }
  return news;
}

// A report before the one with all rows says nothing of those that it had not.
void UsageBook::stored(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number >= all_from_ && number < next_) stored_ = number;
}

void UsageBook::tell_all() {
  const std::lock_guard lock(mutex_);
  stored_ = 0;
  all_from_ = next_;
}

std::map<std::string, UsageCounts> UsageBook::by_tenant() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, UsageCounts> sums;
  for (const auto& [key, row] : rows_) sums[key.tenant] += row.counts;
  return sums;
}

}  // namespace penstock::admission
