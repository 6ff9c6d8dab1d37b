// What tenants, their keys and deployments have had on this day of UTC, at all gateways together,
// and what is reserved of their limits and budgets of a day. Any thread; a short lock for each
// call.
//
// The head tells what all gateways have counted, how much of that was this gateway's, and what the
// others have reserved. So what is left is a limit less all of that, less what was used here since,
// less what is reserved here. What others did since the head has told is not known: by so much all
// gateways together may go beyond a limit. When the head is away, what it told last goes on to
// count.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "admission/decision.h"
#include "admission/usage_counts.h"
#include "base/clock.h"
#include "routing/prices.h"

namespace penstock::admission {

// What a limit of a day counts; as a limit, zero: none.
struct DayAmount {
  std::uint64_t tokens = 0;
  std::uint64_t nanousd = 0;  // billionths of a US dollar
  bool operator==(const DayAmount&) const = default;
  explicit operator bool() const { return tokens != 0 || nanousd != 0; }
  DayAmount& operator+=(const DayAmount& more);
  // Nothing, where it would be less.
  DayAmount less(const DayAmount& other) const;
};

// What a request may take of limits of a day: its prompt, and answers that together have from
// `least` to `most` tokens.
struct DayAsk {
  std::uint64_t prompt = 0;  // tokens, as estimated
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  bool is_fixed = false;  // its answers are not cut: they may have `most`, or it is refused
  routing::Prices prices = {};
  DayAmount held = {};  // of it, what the request has reserved before and not spent

  // What it takes besides what it holds, with so many tokens of answers.
  DayAmount with(std::uint64_t answer) const;
};

// As a number of US dollars, to the billionth, without the zeros at its end.
std::string usd_text(std::uint64_t nanousd);

// Who is held to limits of a day.
struct DayHolder {
  std::string tenant;
  std::string key_id;           // empty: all of the tenant
  std::string deployment = {};  // not empty: it is, whoever asks, and the others are empty
  auto operator<=>(const DayHolder&) const = default;
};

// What one key of a tenant has had.
struct DaySum {
  std::string tenant;  // empty: requests without a key
  std::string key_id;
  UsageCounts counts;
};

// What one deployment has had, whoever asked.
struct DaySpent {
  std::string deployment;
  UsageCounts counts;
};

// What of it is this gateway's, and what others have reserved.
struct DayShare {
  DayHolder of;
  std::optional<DayAmount> used;  // here, as far as the sums have it; nothing: the head forgot
  DayAmount reserved;             // by all other gateways
};

// What the head tells.
struct DayNews {
  base::WallTime as_of{};
  base::WallTime ends_at{};       // midnight UTC
  bool whole = false;             // what was told before is no more
  std::vector<DaySum> sums = {};  // what is not here has not changed
  std::vector<DaySpent> spent = {};
  std::vector<DayShare> shares = {};
};

// What the head is told.
struct DayHold {
  DayHolder of;
  DayAmount used;  // here, since the process began
  DayAmount reserved;
};

// How a key and its tenant stand.
struct DayStanding {
  base::WallTime as_of{};  // the epoch: nothing was told yet
  base::WallTime ends_at{};
  UsageCounts key;
  UsageCounts tenant;        // with all of its keys
  DayAmount key_taken = {};  // of limits of the day: used or reserved, as far as it is known here
  DayAmount tenant_taken = {};
};

class DayLedger;

// What one request has taken of a holder's limits. Settled once, by settle() or at its end as
// nothing. Move only; one without a ledger does nothing. The ledger outlives it.
class DayReservation {
 public:
  DayReservation() = default;
  DayReservation(DayReservation&& other) noexcept;
  DayReservation& operator=(DayReservation&& other) noexcept;
  ~DayReservation() { settle({}); }

  // The request is over and has cost so much. A second call does nothing.
  void settle(const DayAmount& cost);
  // It needs no more than this. It may yet cost it, or more.
  void shrink_to(const DayAmount& most);
  // This is of the same holder, or of none.
  void join(DayReservation more);

 private:
  friend class DayLedger;
  DayReservation(DayLedger& ledger, DayHolder of, const DayAmount& amount)
      : ledger_(&ledger), of_(std::move(of)), amount_(amount) {}

  DayLedger* ledger_ = nullptr;
  DayHolder of_;
  DayAmount amount_;
};

class DayLedger {
 public:
  DayLedger() = default;
  DayLedger(const DayLedger&) = delete;
  DayLedger& operator=(const DayLedger&) = delete;

  void hear(const DayNews& news);
  // Takes what a request is estimated at. kQuota where that is more than the day has left, or
  // kRateLimited where it may be left once requests that are under way have cost less. `limits`:
  // at least one.
  std::variant<DayReservation, Refusal> reserve(const DayHolder& of, const DayAmount& limits,
                                                const DayAmount& estimate, base::WallTime now);
  // How many tokens a request's answers may have together, to be reserved with its prompt: a small
  // part of what is left, or `least` where that is more. Where `least` is more than is left and
  // nothing is reserved, all that is left.
  std::uint64_t answer_within(const DayHolder& of, const DayAmount& limits, const DayAsk& ask,
                              base::WallTime now) const;
  // Whether so much could be reserved now.
  bool has_room(const DayHolder& of, const DayAmount& limits, const DayAmount& estimate,
                base::WallTime now) const;
  // What the head does not know yet, or has to tell others.
  std::vector<DayHold> holds() const;
  // Of the day that now is.
  DayStanding standing(std::string_view tenant, std::string_view key_id, base::WallTime now) const;

 private:
  friend class DayReservation;

  struct Tenant {
    UsageCounts sum;
    std::map<std::string, UsageCounts, std::less<>> keys;
  };
  struct Holding {
    DayAmount used;      // here, since the process began
    DayAmount in_sums;   // of it
    DayAmount reserved;  // here
    DayAmount others;    // reserved by other gateways
  };

  void settled(const DayHolder& of, const DayAmount& reserved, const DayAmount& cost);
  UsageCounts sum_of(const DayHolder& of) const;
  void begin_day(base::WallTime now);
  std::optional<Refusal> refuses(const DayHolder& of, const DayAmount& limits,
                                 const DayAmount& estimate, base::WallTime now) const;
  UsageCounts sum_of(std::string_view tenant, std::string_view key_id) const;
  DayAmount used_by(const DayHolder& of) const;
  DayAmount reserved_by(const DayHolder& of) const;

  mutable std::mutex mutex_;  // guards all below
  base::WallTime as_of_{};
  base::WallTime ends_at_{};
  std::map<std::string, Tenant, std::less<>> tenants_;
  std::map<std::string, UsageCounts, std::less<>> deployments_;
  // None is ever forgotten: the head may yet tell of what was used of it. They are as many as there
  // were tenants and keys with limits of a day, and deployments with budgets.
  std::map<DayHolder, Holding> holdings_;
};

}  // namespace penstock::admission
