#include "admission/day_ledger.h"

#include <algorithm>
#include <chrono>

#include "base/date_text.h"

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;

// What requests under way have reserved may come back as soon as one of them ends.
constexpr std::chrono::seconds kUnderWay{1};
// An answer without a limit of its own may have this part of what is left: many find room side by
// side, and the limit cuts none short before the day is nearly over.
constexpr std::uint64_t kParts = 64;

std::uint64_t less_or_none(std::uint64_t from, std::uint64_t what) {
  return from - std::min(from, what);
}

DayAmount amount_of(const UsageCounts& counts) { return {counts.tokens(), counts.cost_nanousd}; }

// One limit, and how it stands.
struct Line {
  bool is_money;
  std::uint64_t limit;
  std::uint64_t used;
  std::uint64_t reserved;
  std::uint64_t estimate;

  std::string number(std::uint64_t amount) const {
    return is_money ? usd_text(amount) : std::to_string(amount);
  }
  std::string text(std::uint64_t amount) const {
    return is_money ? "$" + usd_text(amount) : std::to_string(amount) + " tokens";
  }
  std::string reckoned() const { return "this request is reckoned at " + text(estimate); }
};

std::string whose(const DayHolder& of) { return of.key_id.empty() ? "" : " for this key"; }

std::optional<Refusal> refuses_by(const DayHolder& of, const Line& line, base::WallTime ends_at,
                                  base::WallTime now) {
  if (line.limit == 0 || line.estimate == 0) return std::nullopt;
  if (line.used + line.estimate > line.limit) {
    return Refusal{DropReason::kQuota, std::chrono::ceil<milliseconds>(ends_at - now),
                   line.number(less_or_none(line.limit, line.used)) + " of " +
                       line.text(line.limit) + " a day are left" + whose(of) + ", and " +
                       line.reckoned() + "; the next day begins at " + base::date_text(ends_at)};
  }
  if (line.used + line.reserved + line.estimate > line.limit) {
    return Refusal{DropReason::kRateLimited, kUnderWay,
                   line.text(line.limit) + " a day" + whose(of) + ", of which " +
                       line.number(line.used) + " are used and " + line.number(line.reserved) +
                       " reserved for requests under way, and " + line.reckoned()};
  }
  return std::nullopt;
}

// The longest answer that fits, up to `most` tokens; 0: none does.
std::uint64_t longest(const DayAsk& ask, const DayAmount& limits, const DayAmount& taken,
                      std::uint64_t most) {
  const DayAmount left = limits.less(taken);
  const auto fits = [&](std::uint64_t answer) {
    const DayAmount cost = ask.with(answer);
    return (limits.tokens == 0 || cost.tokens <= left.tokens) &&
           (limits.nanousd == 0 || cost.nanousd <= left.nanousd);
  };
  std::uint64_t low = 0;
  std::uint64_t high = most;
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

DayAmount DayAsk::with(std::uint64_t answer) const {
  return DayAmount{prompt + answer, prices.nanousd(prompt, 0, answer)}.less(held);
}

DayAmount& DayAmount::operator+=(const DayAmount& more) {
  tokens += more.tokens;
  nanousd += more.nanousd;
  return *this;
}

DayAmount DayAmount::less(const DayAmount& other) const {
  return {less_or_none(tokens, other.tokens), less_or_none(nanousd, other.nanousd)};
}

std::string usd_text(std::uint64_t nanousd) {
  constexpr std::uint64_t kNano = 1'000'000'000;
  constexpr std::size_t kDigits = 9;
  const std::string rest = std::to_string(nanousd % kNano);
  std::string out =
      std::to_string(nanousd / kNano) + "." + std::string(kDigits - rest.size(), '0') + rest;
  out.erase(std::max(out.find_last_not_of('0') + 1, out.find('.') + 2));
  return out;
}

DayReservation::DayReservation(DayReservation&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      of_(std::move(other.of_)),
      amount_(other.amount_) {}

DayReservation& DayReservation::operator=(DayReservation&& other) noexcept {
  if (this != &other) {
    settle({});
    ledger_ = std::exchange(other.ledger_, nullptr);
    of_ = std::move(other.of_);
    amount_ = other.amount_;
  }
  return *this;
}

void DayReservation::settle(const DayAmount& cost) {
  if (ledger_ != nullptr) std::exchange(ledger_, nullptr)->settled(of_, amount_, cost);
}

void DayReservation::shrink_to(const DayAmount& most) {
  if (ledger_ == nullptr) return;
  const DayAmount spare = amount_.less(most);
  ledger_->settled(of_, spare, {});
  amount_ = amount_.less(spare);
}

void DayReservation::join(DayReservation more) {
  if (ledger_ == nullptr) {
    *this = std::move(more);
  } else if (std::exchange(more.ledger_, nullptr) != nullptr) {
    amount_ += more.amount_;
  }
}

void DayLedger::hear(const DayNews& news) {
  const std::lock_guard lock(mutex_);
  if (news.ends_at < ends_at_) return;  // of a day that is over here
  if (news.whole || news.ends_at != ends_at_) {
    tenants_.clear();
    deployments_.clear();
  }
  as_of_ = news.as_of;
  ends_at_ = news.ends_at;
  for (const DaySum& told : news.sums) {
    Tenant& tenant = tenants_[told.tenant];
    UsageCounts& key = tenant.keys[told.key_id];
    tenant.sum -= key;
    tenant.sum += told.counts;
    key = told.counts;
  }
  for (const DaySpent& told : news.spent) deployments_[told.deployment] = told.counts;
  if (news.whole) {
    for (auto& [of, holding] : holdings_) holding.others = {};
  }
  for (const DayShare& share : news.shares) {
    Holding& holding = holdings_[share.of];
    if (share.used) holding.in_sums = *share.used;
    holding.others = share.reserved;
  }
}

std::variant<DayReservation, Refusal> DayLedger::reserve(const DayHolder& of,
                                                         const DayAmount& limits,
                                                         const DayAmount& estimate,
                                                         base::WallTime now) {
  const std::lock_guard lock(mutex_);
  if (now >= ends_at_) begin_day(now);
  if (auto no = refuses(of, limits, estimate, now)) return *std::move(no);
  holdings_[of].reserved += estimate;
  return DayReservation(*this, of, estimate);
}

std::uint64_t DayLedger::answer_within(const DayHolder& of, const DayAmount& limits,
                                       const DayAsk& ask, base::WallTime now) const {
  if (ask.is_fixed) return ask.most;
  const std::lock_guard lock(mutex_);
  const DayAmount used = now < ends_at_ ? used_by(of) : DayAmount{};
  DayAmount taken = used;
  taken += reserved_by(of);
  const std::uint64_t free = longest(ask, limits, taken, kParts * ask.most);
  const std::uint64_t wanted = std::clamp(free / kParts, ask.least, ask.most);
  if (wanted <= free) return wanted;
  return std::clamp<std::uint64_t>(longest(ask, limits, used, wanted), 1, wanted);
}

bool DayLedger::has_room(const DayHolder& of, const DayAmount& limits, const DayAmount& estimate,
                         base::WallTime now) const {
  const std::lock_guard lock(mutex_);
  return !refuses(of, limits, estimate, now);
}

std::optional<Refusal> DayLedger::refuses(const DayHolder& of, const DayAmount& limits,
                                          const DayAmount& estimate, base::WallTime now) const {
  const DayAmount used = now < ends_at_ ? used_by(of) : DayAmount{};
  const DayAmount reserved = reserved_by(of);
  const Line tokens{false, limits.tokens, used.tokens, reserved.tokens, estimate.tokens};
  if (auto no = refuses_by(of, tokens, ends_at_, now)) return no;
  const Line money{true, limits.nanousd, used.nanousd, reserved.nanousd, estimate.nanousd};
  return refuses_by(of, money, ends_at_, now);
}

std::vector<DayHold> DayLedger::holds() const {
  const std::lock_guard lock(mutex_);
  std::vector<DayHold> found;
  for (const auto& [of, holding] : holdings_) {
    if (holding.used == holding.in_sums && !holding.reserved) continue;
    found.push_back({of, holding.used, holding.reserved});
  }
  return found;
}

DayStanding DayLedger::standing(std::string_view tenant, std::string_view key_id,
                                base::WallTime now) const {
  const std::lock_guard lock(mutex_);
  if (now >= ends_at_) {
    const auto today = std::chrono::floor<std::chrono::days>(now);
    return {.as_of = as_of_, .ends_at = today + std::chrono::days(1), .key = {}, .tenant = {}};
  }
  const DayHolder all{std::string(tenant), {}};
  const DayHolder one{std::string(tenant), std::string(key_id)};
  DayStanding found{.as_of = as_of_,
                    .ends_at = ends_at_,
                    .key = sum_of(tenant, key_id),
                    .tenant = sum_of(tenant, {}),
                    .key_taken = used_by(one),
                    .tenant_taken = used_by(all)};
  found.key_taken += reserved_by(one);
  found.tenant_taken += reserved_by(all);
  return found;
}

void DayLedger::settled(const DayHolder& of, const DayAmount& reserved, const DayAmount& cost) {
  const std::lock_guard lock(mutex_);
  Holding& holding = holdings_[of];
  holding.reserved = holding.reserved.less(reserved);
  holding.used += cost;
}

// What was used until now is the day before's.
void DayLedger::begin_day(base::WallTime now) {
  tenants_.clear();
  deployments_.clear();
  for (auto& [of, holding] : holdings_) holding.in_sums = holding.used;
  ends_at_ = std::chrono::floor<std::chrono::days>(now) + std::chrono::days(1);
}

// `key_id` empty: of all of them.
UsageCounts DayLedger::sum_of(std::string_view tenant, std::string_view key_id) const {
  const auto known = tenants_.find(tenant);
  if (known == tenants_.end()) return {};
  if (key_id.empty()) return known->second.sum;
  const auto key = known->second.keys.find(key_id);
  return key == known->second.keys.end() ? UsageCounts{} : key->second;
}

UsageCounts DayLedger::sum_of(const DayHolder& of) const {
  if (of.deployment.empty()) return sum_of(of.tenant, of.key_id);
  const auto known = deployments_.find(of.deployment);
  return known == deployments_.end() ? UsageCounts{} : known->second;
}

DayAmount DayLedger::used_by(const DayHolder& of) const {
  DayAmount used = amount_of(sum_of(of));
  const auto holding = holdings_.find(of);
  if (holding != holdings_.end()) used += holding->second.used.less(holding->second.in_sums);
  return used;
}

// Here and elsewhere.
DayAmount DayLedger::reserved_by(const DayHolder& of) const {
  const auto holding = holdings_.find(of);
  if (holding == holdings_.end()) return {};
  DayAmount reserved = holding->second.reserved;
  reserved += holding->second.others;
  return reserved;
}

}  // namespace penstock::admission
