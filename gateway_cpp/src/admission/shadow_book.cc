#include "admission/shadow_book.h"

#include <chrono>
#include <memory>

namespace penstock::admission {
namespace {

constexpr std::chrono::minutes kMinute{1};

}  // namespace

ShadowBook::ShadowBook()
    : tenant_(std::make_shared<const Tenant>(Tenant{.id = std::string(kShadowTenant)})),
      meter_(std::make_shared<TenantMeter>()) {}

ShadowBook::Entry& ShadowBook::entry(std::string_view uid, std::string_view name) {
  auto found = entries_.find(uid);
  const bool is_full = entries_.size() >= kMostRules;
  if (found == entries_.end() && is_full && !uid.empty()) return entry({}, "_other");
  if (found == entries_.end()) {
    found = entries_.try_emplace(std::string(uid)).first;
    found->second.row.uid = uid;
    found->second.row.name = name;
  }
  return found->second;
}

std::optional<ShadowOutcome> ShadowBook::begin(const routing::ShadowRule& rule,
                                               base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  Entry& one = entry(rule.uid, rule.name);
  if (rule.budget_used_up) return ShadowOutcome::kBudget;
  if (one.row.under_way >= rule.max_concurrent) return ShadowOutcome::kConcurrency;
  if (now - one.minute >= kMinute) {
    one.minute = now;
    one.begun = 0;
  }
  if (rule.max_per_minute != 0 && one.begun >= rule.max_per_minute) {
    return ShadowOutcome::kRate;
  }
  ++one.begun;
  ++one.row.under_way;
  return std::nullopt;
}

void ShadowBook::end(const routing::ShadowRule& rule) {
  const std::lock_guard lock(mutex_);
  --entry(rule.uid, rule.name).row.under_way;
}

std::optional<ShadowOutcome> ShadowBook::begin_question(const routing::ShadowRule& rule) {
  const std::lock_guard lock(mutex_);
  Entry& one = entry(rule.uid, rule.name);
  if (rule.budget_used_up) return ShadowOutcome::kBudget;
  if (one.questions >= kMostQuestions) return ShadowOutcome::kConcurrency;
  ++one.questions;
  return std::nullopt;
}

void ShadowBook::end_question(const routing::ShadowRule& rule) {
  const std::lock_guard lock(mutex_);
  --entry(rule.uid, rule.name).questions;
}

void ShadowBook::count(std::string_view uid, std::string_view name, ShadowOutcome outcome) {
  const std::lock_guard lock(mutex_);
  ++entry(uid, name).row.counts[static_cast<std::size_t>(outcome)];
}

std::vector<ShadowRow> ShadowBook::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<ShadowRow> rows;
  rows.reserve(entries_.size());
  for (const auto& [uid, one] : entries_) rows.push_back(one.row);
  return rows;
}

Caller ShadowBook::payer(const routing::ShadowRule& rule) const {
  return {.tenant = tenant_,
          .key_id = rule.uid,
          .meter = meter_,
          .key_per_day = {.tokens = 0, .nanousd = rule.nanousd_per_day}};
}

}  // namespace penstock::admission
