#include "admission/tenant_meter.h"

#include <algorithm>
#include <cmath>

#include "base/date_text.h"

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using Minutes = std::chrono::duration<double, std::ratio<60>>;

// This gateway's part of a limit: none stays none, and none becomes nothing. Shares are told in
// whole permille: a third of six is two, though 333 of 1000 are not quite.
std::uint32_t share_of(std::uint32_t limit, std::uint32_t permille) {
  if (limit == 0 || permille == 0) return limit;
  const std::uint64_t untold = std::min<std::uint64_t>(limit, 500);
  const std::uint64_t part = (std::uint64_t{limit} * std::min(permille, 1000U) + untold) / 1000;
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(part), 1, limit);
}

// `here`: this gateway's part of the limit.
Refusal limited(milliseconds in, const std::string& what, std::uint32_t here, std::uint32_t limit) {
  std::string detail = std::to_string(here) + " " + what;
  if (here < limit) detail += " in this gateway, its part of " + std::to_string(limit);
  return {DropReason::kRateLimited, retry_in(in), std::move(detail)};
}

// What the head has said of the day; DayLedger knows sooner, once it has heard what was used.
std::optional<Refusal> used_up(const TenantLimits& limits, base::WallTime wall) {
  if (!limits.quota_used_up) return std::nullopt;
  Refusal refusal{DropReason::kQuota};
  if (limits.quota_resets_at == base::WallTime{}) return refusal;
  if (limits.quota_resets_at <= wall) return std::nullopt;
  refusal.retry_after = std::chrono::ceil<milliseconds>(limits.quota_resets_at - wall);
  refusal.detail = "the next day begins at " + base::date_text(limits.quota_resets_at);
  return refusal;
}

}  // namespace

std::string reset_text(milliseconds time) {
  if (time < std::chrono::seconds(1)) return std::to_string(std::max(time.count(), 0L)) + "ms";
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
  const std::string rest = std::to_string(seconds % 60) + "s";
  return seconds < 60 ? rest : std::to_string(seconds / 60) + "m" + rest;
}

TenantReservation& TenantReservation::operator=(TenantReservation&& other) noexcept {
  if (this != &other) {
    give_back();
    meter_ = std::move(other.meter_);
    tokens_ = other.tokens_;
  }
  return *this;
}

void TenantReservation::settle(std::uint64_t true_tokens, base::SteadyTime now) {
  if (meter_ == nullptr) return;
  std::exchange(meter_, nullptr)->settled(tokens_, true_tokens, now);
}

void TenantReservation::give_back() {
  if (meter_ != nullptr) std::exchange(meter_, nullptr)->left();
}

// A new limit begins full.
void TenantMeter::Bucket::resize(std::uint32_t to, base::SteadyTime now) {
  fill(now);
  level = limit == 0 ? to : std::min<double>(level, to);
  limit = to;
}

// What is owed of another limit is owed in proportion.
void TenantMeter::Bucket::change(std::uint32_t from, std::uint32_t to) {
  if (level < 0 && from > 0 && to > 0) level = level * to / from;
}

double TenantMeter::Bucket::at_time(base::SteadyTime now) const {
  if (now <= at) return level;
  return std::min<double>(limit, level + Minutes(now - at).count() * limit);
}

void TenantMeter::Bucket::fill(base::SteadyTime now) {
  level = at_time(now);
  at = std::max(at, now);
}

milliseconds TenantMeter::Bucket::until(double wanted, base::SteadyTime now) const {
  const double missing = wanted - at_time(now);
  if (missing <= 0) return milliseconds(0);
  return std::chrono::ceil<milliseconds>(Minutes(missing / limit));
}

std::optional<RateWindow> TenantMeter::Bucket::window(base::SteadyTime now) const {
  if (limit == 0) return std::nullopt;
  return RateWindow{limit, static_cast<std::uint32_t>(std::max(at_time(now), 0.0)),
                    until(limit, now)};
}

TenantMeter::TenantMeter(const TenantLimits& limits) { set_limits(limits, {}); }

void TenantMeter::set_limits(const TenantLimits& limits, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  requests_.change(limits_.requests_per_minute, limits.requests_per_minute);
  tokens_.change(limits_.tokens_per_minute, limits.tokens_per_minute);
  limits_ = limits;
  requests_.resize(share_of(limits.requests_per_minute, limits.share_permille), now);
  tokens_.resize(share_of(limits.tokens_per_minute, limits.share_permille), now);
  const std::uint32_t here = limits.max_streams_here;
  max_streams_ = here == 0 ? share_of(limits.max_streams, limits.share_permille)
                           : std::min(limits.max_streams, here);
}

std::variant<TenantReservation, Refusal> TenantMeter::reserve(std::uint64_t tokens,
                                                              base::SteadyTime now,
                                                              base::WallTime wall) {
  {
    const std::lock_guard lock(mutex_);
    requests_.fill(now);
    tokens_.fill(now);
    if (auto refusal = refuses(tokens, now, wall)) return *std::move(refusal);
    requests_.level -= 1;
    tokens_.level -= static_cast<double>(tokens);
    ++streams_;
  }
  return TenantReservation(shared_from_this(), tokens);
}

std::optional<Refusal> TenantMeter::refuses(std::uint64_t tokens, base::SteadyTime now,
                                            base::WallTime wall) const {
  if (max_streams_ != 0 && streams_ >= max_streams_) {
    return limited(std::chrono::seconds(1), "requests under way", max_streams_,
                   limits_.max_streams);
  }
  if (requests_.limit != 0 && requests_.level < 1) {
    return limited(requests_.until(1, now), "requests a minute", requests_.limit,
                   limits_.requests_per_minute);
  }
  if (tokens_.limit != 0) {
    const double wanted = std::min<double>(static_cast<double>(tokens), tokens_.limit);
    if (tokens_.level < wanted) {
      return limited(tokens_.until(wanted, now), "tokens a minute", tokens_.limit,
                     limits_.tokens_per_minute);
    }
  }
  return used_up(limits_, wall);
}

void TenantMeter::settled(std::uint64_t reserved, std::uint64_t true_tokens, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  --streams_;
  tokens_.fill(now);
  const double level =
      tokens_.level + static_cast<double>(reserved) - static_cast<double>(true_tokens);
  tokens_.level = std::min<double>(level, tokens_.limit);
}

void TenantMeter::left() {
  const std::lock_guard lock(mutex_);
  --streams_;
}

RateState TenantMeter::rate_state(base::SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  return {requests_.window(now), tokens_.window(now), streams_window()};
}

std::optional<RateWindow> TenantMeter::streams_window() const {
  if (max_streams_ == 0) return std::nullopt;
  return RateWindow{.limit = max_streams_,
                    .remaining = max_streams_ - std::min(streams_, max_streams_)};
}

std::uint32_t TenantMeter::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

}  // namespace penstock::admission
