#include "admission/appointments.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;

// Timers are not exact, and clocks of two machines run apart: this much too early is in time.
constexpr milliseconds kEarly(50);
// What is promised stays below what comes free, so that what goes slower than foreseen breaks no
// promise.
constexpr double kSpacing = 1.15;
// Nobody is asked to come back sooner.
constexpr milliseconds kLeastWait(1000);

}  // namespace

// Of how a body begins and ends: the newest message, which tells requests apart, is at the end.
std::uint64_t Appointments::fingerprint(std::string_view tenant, std::string_view key,
                                        std::string_view body) {
  constexpr std::size_t kHead = 128;
  constexpr std::size_t kTail = 1024;
  const std::hash<std::string_view> hash;
  const std::uint64_t who = hash(tenant) * 31 ^ hash(key) * 17;
  if (body.size() <= kHead + kTail) return who ^ hash(body);
  const std::string_view tail = body.substr(body.size() - kTail);
  return who ^ hash(tail) ^ (hash(body.substr(0, kHead)) << 1) ^ body.size();
}

bool Appointments::is_due(std::uint64_t request, Time now) {
  forget_missed(now);
  const auto entry = earliest(request);
  return entry != by_request_.end() && entry->second.at->first <= now + kEarly;
}

std::size_t Appointments::due(std::string_view tenant, Time since, Time until,
                              std::size_t most) const {
  const auto calendar = by_tenant_.find(tenant);
  if (calendar == by_tenant_.end()) return 0;
  std::size_t count = 0;
  auto next = calendar->second.lower_bound(since);
  for (; next != calendar->second.end() && next->first <= until && count < most; ++next) ++count;
  return count;
}

milliseconds Appointments::send_away(std::string_view tenant, std::uint64_t request, Time now,
                                     milliseconds wait, microseconds between) {
  forget_missed(now);
  Time at = now + std::max(wait, kLeastWait);
  if (const auto entry = earliest(request); entry != by_request_.end()) {
    const Time told = entry->second.at->first;
    const bool early = told > now + kEarly;
    if (early && !is_of_another(request, now)) return std::chrono::ceil<milliseconds>(told - now);
    if (!early) erase(entry);
  }
  if (const auto found = by_tenant_.find(tenant); found != by_tenant_.end()) {
    const double apart = kSpacing * static_cast<double>(by_tenant_.size());
    at = std::max(at, found->second.rbegin()->first +
                          std::chrono::duration_cast<microseconds>(between * apart));
  }
  if (at > now + kMost || by_request_.size() >= kMostKept) return kMost;
  auto calendar = by_tenant_.find(tenant);
  if (calendar == by_tenant_.end()) calendar = by_tenant_.emplace(tenant, Calendar()).first;
  const auto place = calendar->second.emplace(at, request);
  by_request_.emplace(request, Entry{std::string(tenant), place, all_.emplace(at, request), now});
  return std::chrono::ceil<milliseconds>(at - now);
}

void Appointments::keep(std::uint64_t request) {
  if (const auto entry = earliest(request); entry != by_request_.end()) erase(entry);
}

// Among those that are alike, it is too soon for one that was told a time before.
bool Appointments::is_of_another(std::uint64_t request, Time now) const {
  const auto [first, last] = by_request_.equal_range(request);
  const auto later = [](const auto& one, const auto& other) {
    return one.second.told < other.second.told;
  };
  const auto newest = std::max_element(first, last, later);
  const auto alike = static_cast<std::size_t>(std::distance(first, last));
  return alike < kMostAlike && now - newest->second.told < kSoonestRetry;
}

void Appointments::forget_missed(Time now) {
  while (!all_.empty() && all_.begin()->first + kGrace < now) erase(entry_of(all_.begin()));
}

Appointments::Entries::iterator Appointments::entry_of(Calendar::iterator in_turn) {
  auto [entry, last] = by_request_.equal_range(in_turn->second);
  while (entry->second.in_turn != in_turn) ++entry;
  return entry;
}

void Appointments::erase(Entries::iterator entry) {
  const auto calendar = by_tenant_.find(entry->second.tenant);
  calendar->second.erase(entry->second.at);
  if (calendar->second.empty()) by_tenant_.erase(calendar);
  all_.erase(entry->second.in_turn);
  by_request_.erase(entry);
}

Appointments::Entries::iterator Appointments::earliest(std::uint64_t request) {
  const auto [first, last] = by_request_.equal_range(request);
  const auto sooner = [](const auto& one, const auto& other) {
    return one.second.at->first < other.second.at->first;
  };
  return first == last ? by_request_.end() : std::min_element(first, last, sooner);
}

}  // namespace penstock::admission
