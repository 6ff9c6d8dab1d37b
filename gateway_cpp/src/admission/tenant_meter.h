// What one tenant may do in this gateway, and has done: requests and tokens of a minute, requests
// under way. Any thread; a short lock for each call.
//
// Limits are this gateway's share of the tenant's, at least 1. Requests and tokens are a bucket
// each that fills continuously and holds one minute's worth: a tenant that was silent may send that
// much at once. A bucket that becomes larger holds no more for that: it fills up, at its new pace.
// So all gateways together give no more than the tenant's limit wherever shares move to, but for
// what rounding adds, half a request a gateway, and what one that begins anew has. What is under
// way when the share shrinks stays, and counts; the head gives it to nobody else until it has
// ended. Tokens are taken as estimated and corrected with the true count; what was too little taken
// is a debt that the bucket fills up first. A request that is estimated at more than a minute's
// worth goes when the bucket is full, or it would never go.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "admission/day_ledger.h"
#include "admission/decision.h"
#include "base/clock.h"

namespace penstock::admission {

// Of all gateways together. Zero: no limit.
struct TenantLimits {
  std::uint32_t requests_per_minute = 0;
  std::uint32_t tokens_per_minute = 0;
  std::uint32_t max_streams = 0;       // requests under way
  std::uint32_t share_permille = 0;    // of the above, this gateway's; 0: all of it
  std::uint32_t max_streams_here = 0;  // of max_streams, this gateway's; 0: by share_permille
  DayAmount per_day = {};              // DayLedger's
  bool quota_used_up = false;          // the tokens of the day
  base::WallTime quota_resets_at{};    // the epoch: not known
  bool operator==(const TenantLimits&) const = default;
};

// How a limit stands, for the x-ratelimit headers.
struct RateWindow {
  std::uint32_t limit = 0;
  std::uint32_t remaining = 0;
  std::chrono::milliseconds reset{0};  // until all of the limit is there again
};
struct RateState {
  std::optional<RateWindow> requests;  // nothing where there is no limit
  std::optional<RateWindow> tokens;
  std::optional<RateWindow> streams;  // requests under way: nobody knows when they end
};

// As x-ratelimit-reset-* says it: "170ms", "1s", "6m0s".
std::string reset_text(std::chrono::milliseconds time);

class TenantMeter;

// What one request has taken. Settled once, by settle() or at its end as what was reserved. Move
// only; one without a meter does nothing.
class TenantReservation {
 public:
  TenantReservation() = default;
  TenantReservation(std::shared_ptr<TenantMeter> meter, std::uint64_t tokens)
      : meter_(std::move(meter)), tokens_(tokens) {}
  TenantReservation(TenantReservation&& other) noexcept
      : meter_(std::move(other.meter_)), tokens_(other.tokens_) {}
  TenantReservation& operator=(TenantReservation&& other) noexcept;
  ~TenantReservation() { give_back(); }

  std::uint64_t tokens() const { return tokens_; }
  bool settled() const { return meter_ == nullptr; }
  // The request is over and has cost so much; 0 where it was refused after all, which still counts
  // as a request of the minute. Once: a second call does nothing.
  void settle(std::uint64_t true_tokens, base::SteadyTime now);

 private:
  void give_back();

  std::shared_ptr<TenantMeter> meter_;
  std::uint64_t tokens_ = 0;
};

class TenantMeter : public std::enable_shared_from_this<TenantMeter> {
 public:
  explicit TenantMeter(const TenantLimits& limits = {});
  TenantMeter(const TenantMeter&) = delete;
  TenantMeter& operator=(const TenantMeter&) = delete;

  // New limits, from now on: what is left of the old ones, or owed, stays.
  void set_limits(const TenantLimits& limits, base::SteadyTime now);

  // kRateLimited with the time until there is enough again, or kQuota. Nothing is taken then.
  std::variant<TenantReservation, Refusal> reserve(std::uint64_t tokens, base::SteadyTime now,
                                                   base::WallTime wall);
  RateState rate_state(base::SteadyTime now) const;
  std::uint32_t streams() const;  // under way

 private:
  friend class TenantReservation;

  // Fills continuously; below 0 is debt.
  struct Bucket {
    std::uint32_t limit = 0;  // of a minute; 0: none
    double level = 0;
    base::SteadyTime at{};  // when `level` was right

    void change(std::uint32_t from, std::uint32_t to);  // the tenant's limit
    void resize(std::uint32_t to, base::SteadyTime now);
    double at_time(base::SteadyTime now) const;
    void fill(base::SteadyTime now);
    std::chrono::milliseconds until(double wanted, base::SteadyTime now) const;
    std::optional<RateWindow> window(base::SteadyTime now) const;
  };

  std::optional<RateWindow> streams_window() const;
  std::optional<Refusal> refuses(std::uint64_t tokens, base::SteadyTime now,
                                 base::WallTime wall) const;
  void settled(std::uint64_t reserved, std::uint64_t true_tokens, base::SteadyTime now);
  void left();

  mutable std::mutex mutex_;  // guards all below
  TenantLimits limits_;
  Bucket requests_;
  Bucket tokens_;
  std::uint32_t max_streams_ = 0;  // this gateway's
  std::uint32_t streams_ = 0;
};

}  // namespace penstock::admission
