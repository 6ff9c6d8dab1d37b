// When those that were refused are to come back, so that a place in the queue is left for them
// then. Not for several threads at once; callers pass the time.
//
// Who is refused gets a time of its own, one after the other as places come free, and newcomers of
// the same tenant do not take the places of those that are due: told the same time, all of them
// would come at once, and find the queue full of those that had never been sent away. Each tenant
// has a calendar of its own, and an equal part of the places, so that a flood of one sends no other
// away for longer.
//
// A request is known again by its body, as nothing else of a retry is sure to be the same. Of two
// that are alike, the second is another client's if it comes sooner than anybody retries.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"

namespace penstock::admission {

class Appointments {
 public:
  using Time = base::SteadyTime;
  using milliseconds = std::chrono::milliseconds;
  using microseconds = std::chrono::microseconds;

  // How long a place is left for one that does not come: a client that only reads whole seconds
  // comes up to one late.
  static constexpr std::chrono::seconds kGrace{2};
  static constexpr std::chrono::seconds kMost{60};  // ahead; beyond it nothing is promised
  static constexpr std::size_t kMostKept = 1 << 16;
  static constexpr std::size_t kMostAlike = 64;
  // Libraries that do not wait for as long as they are told wait for longer than this.
  static constexpr milliseconds kSoonestRetry{250};

  // What a request and its retries have in common. `key`: the id of the caller's.
  static std::uint64_t fingerprint(std::string_view tenant, std::string_view key,
                                   std::string_view body);

  bool empty() const { return by_request_.empty(); }
  // Whether the request was told to come by now. `request`: what tells it from others, its retry
  // alike.
  bool is_due(std::uint64_t request, Time now);
  // Those of a tenant that were to come in this time and have not, `most` at most.
  std::size_t due(std::string_view tenant, Time since, Time until, std::size_t most) const;
  // The request was refused. When it is to come back: once `wait` is over, what was promised to
  // those before it is kept, and a place comes free each `between`. One that came too early keeps
  // its time; one like it that nobody can have told so gets its own.
  milliseconds send_away(std::string_view tenant, std::uint64_t request, Time now,
                         milliseconds wait, microseconds between);
  // It came, and was let in.
  void keep(std::uint64_t request);

 private:
  using Calendar = std::multimap<Time, std::uint64_t>;
  struct Entry {
    std::string tenant;
    Calendar::iterator at;       // in the tenant's
    Calendar::iterator in_turn;  // in that of all
    Time told;
  };
  using Entries = std::unordered_multimap<std::uint64_t, Entry>;

  bool is_of_another(std::uint64_t request, Time now) const;
  void forget_missed(Time now);
  Entries::iterator entry_of(Calendar::iterator in_turn);
  void erase(Entries::iterator entry);
  Entries::iterator earliest(std::uint64_t request);

  std::map<std::string, Calendar, std::less<>> by_tenant_;  // none that is empty
  Calendar all_;  // of all tenants: who is missed is found at its front, however many there are
  Entries by_request_;
};

}  // namespace penstock::admission
