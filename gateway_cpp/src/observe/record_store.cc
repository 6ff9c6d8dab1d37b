#include "observe/record_store.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "observe/record_tail.h"

namespace penstock::observe {

namespace {

constexpr std::size_t kShares = 4;  // one tenant has one of so many at most
constexpr std::uint64_t kHourUs = 3'600'000'000;
constexpr std::array kKinds = {std::string_view("error"), std::string_view("refusal"),
                               std::string_view("slow"), std::string_view("ordinary")};
constexpr std::array kDrops = {std::string_view("budget"), std::string_view("tenant_share")};

}  // namespace

std::string_view name(RecordKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
std::string_view name(RecordDrop reason) { return kDrops[static_cast<std::size_t>(reason)]; }

RecordFacts RecordStore::Kept::facts() const {
  return {.tenant = tenant->id,
          .status = status,
          .received_us = received_us,
          .duration_us = duration_us};
}

RecordStore::RecordStore(std::size_t budget, base::WallTime began, std::chrono::microseconds slow)
    : budget_(budget),
      slow_us_(static_cast<std::uint64_t>(slow.count())),
      kept_since_us_(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(began.time_since_epoch())
              .count())) {}

RecordKind RecordStore::Tenant::first_to_go() const {
  const Shelf& ordinary = shelves[static_cast<std::size_t>(RecordKind::kOrdinary)];
  if (ordinary.bytes > 0 && ordinary.bytes * kShares >= bytes) return RecordKind::kOrdinary;
  const auto most = std::ranges::max_element(shelves, {}, &Shelf::bytes);
  return static_cast<RecordKind>(most - shelves.begin());
}

RecordStore::~RecordStore() {
  for (auto& [id, tenant] : tenants_) {
    for (Shelf& shelf : tenant.shelves) shelf.records.clear();
  }
  all_.clear_and_dispose(free);
  by_bytes_.clear();
}

RecordStore::Kept* RecordStore::make(const RecordFacts& facts, std::string_view bytes) {
  auto* const kept = new (::operator new(sizeof(Kept) + bytes.size())) Kept();
  kept->received_us = facts.received_us;
  kept->duration_us = facts.duration_us;
  kept->size = static_cast<std::uint32_t>(bytes.size());
  kept->status = static_cast<std::uint16_t>(facts.status);
  bytes.copy(reinterpret_cast<char*>(kept + 1), bytes.size());
  return kept;
}

void RecordStore::free(Kept* kept) {
  kept->~Kept();
  ::operator delete(kept);
}

RecordKind RecordStore::kind_of(const RecordFacts& facts) const {
  switch (facts.outcome) {
    case base::Outcome::kFailed:
    case base::Outcome::kInvalid:
      return RecordKind::kError;
    case base::Outcome::kRejected:
      return RecordKind::kRefusal;
    case base::Outcome::kSucceeded:
    case base::Outcome::kCancelled:
      break;
  }
  return facts.duration_us > slow_us_ ? RecordKind::kSlow : RecordKind::kOrdinary;
}

// Memory is asked for and given back without the lock.
void RecordStore::take(const RecordFacts& facts, std::string_view bytes) {
  if (sizeof(Kept) + bytes.size() > budget_ / kShares) return pass_by(facts, bytes);
  Kept* const kept = make(facts, bytes);
  kept->kind = kind_of(facts);
  const std::uint64_t now_us = kept->ended_us();
  All gone;
  {
    const auto lock = lock_to_take();
    Tenant& tenant = tenant_of(facts.tenant);
    add(*kept, tenant);
    if (!tails_.empty()) offer(facts, bytes);
    while (tenant.bytes > budget_ / kShares) drop(tenant, RecordDrop::kTenantShare, now_us, gone);
    while (totals_.bytes > budget_) {
      drop(*by_bytes_.rbegin(), RecordDrop::kBudget, now_us, gone);
    }
  }
  gone.clear_and_dispose(free);
}

// It is larger than all that its tenant may have: who follows is told of it, nobody else.
void RecordStore::pass_by(const RecordFacts& facts, std::string_view bytes) {
  const auto lock = lock_to_take();
  offer(facts, bytes);
  ++totals_.dropped[static_cast<std::size_t>(RecordDrop::kTenantShare)];
  kept_since_us_ = std::max(kept_since_us_, facts.received_us + 1);
}

// Whoever searches takes the lock again and again: it stands back as long as it is told of others.
std::unique_lock<std::mutex> RecordStore::lock_to_take() {
  takers_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  takers_.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

RecordStore::Tenant& RecordStore::tenant_of(std::string_view id) {
  const auto found = tenants_.find(id);
  if (found != tenants_.end()) return found->second;
  Tenant& tenant = tenants_[std::string(id)];
  tenant.id = id;
  by_bytes_.insert(tenant);
  return tenant;
}

// It has more bytes, or less: it moves only where another is between.
void RecordStore::weigh(Tenant& tenant, std::size_t more, std::size_t less) {
  tenant.bytes += more;
  tenant.bytes -= less;
  totals_.bytes += more;
  totals_.bytes -= less;
  const auto at = by_bytes_.iterator_to(tenant);
  const auto next = std::next(at);
  const bool is_above = next != by_bytes_.end() && next->bytes < tenant.bytes;
  const bool is_below = at != by_bytes_.begin() && std::prev(at)->bytes > tenant.bytes;
  if (!is_above && !is_below) return;
  by_bytes_.erase(at);
  by_bytes_.insert(tenant);
}

void RecordStore::add(Kept& kept, Tenant& tenant) {
  kept.tenant = &tenant;
  Shelf& shelf = tenant.shelf(kept.kind);
  shelf.records.push_back(kept);
  shelf.bytes += kept.takes();
  all_.push_back(kept);
  ++totals_.records[static_cast<std::size_t>(kept.kind)];
  weigh(tenant, kept.takes(), 0);
}

// A tenant of whom nothing is left is forgotten.
void RecordStore::drop(Tenant& tenant, RecordDrop why, std::uint64_t now_us, All& gone) {
  const RecordKind kind = tenant.first_to_go();
  Shelf& shelf = tenant.shelf(kind);
  Kept& kept = shelf.records.front();
  for (Cursor* cursor : cursors_) {
    if (cursor->next == &kept) cursor->next = older(kept);
  }
  if (now_us < kept.ended_us() + kHourUs) ++totals_.dropped[static_cast<std::size_t>(why)];
  kept_since_us_ = std::max(kept_since_us_, kept.received_us + 1);
  --totals_.records[static_cast<std::size_t>(kind)];
  shelf.bytes -= kept.takes();
  shelf.records.pop_front();
  all_.erase(all_.iterator_to(kept));
  gone.push_back(kept);
  weigh(tenant, 0, kept.takes());
  if (tenant.bytes > 0) return;
  by_bytes_.erase(by_bytes_.iterator_to(tenant));
  tenants_.erase(tenants_.find(tenant.id));
}

std::uint64_t RecordStore::kept_since_us() const {
  const std::lock_guard lock(mutex_);
  return keeps() ? kept_since_us_ : 0;
}

RecordTotals RecordStore::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace penstock::observe
