// The circuit breaker of one replica: a table of states and events. Pure: its owner brings the
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "routing/traits.h"

namespace penstock::routing {

class Breaker {
 public:
  enum class State : std::uint8_t {
    kClosed,    // no doubt
    kOpen,      // doubted until its time is over
    kHalfOpen,  // one call at a time finds out
  };
  // Whether another replica can take the work of this one.
  enum class Last : std::uint8_t { kNo, kYes };

  // A failure; the doubt that it brought, 0: none. What fails while it is open adds nothing: the
  // many calls that a death takes along are one failure. The last usable replica is doubted only
  // when its process is lost.
  std::chrono::milliseconds fail(Failure failure, Last last, base::SteadyTime now);
  // It answered a call whole: failures begin anew.
  void answer();
  // Its process is back: doubt of a lost one is over, its failures stay counted.
  void back();
  // Time went on; open becomes half-open at until(), with `calls` of before still under way.
  void advance(std::uint32_t calls, base::SteadyTime now);

  // A call was sent: the probe, where it is half-open.
  void sent(base::SteadyTime now);
  // A call ended, maybe without a word on how: the probe's place is free once no older call is left
  // that it may have been.
  void released();
  // Half-open, and no probe is under way: one that takes its time makes room for another.
  bool may_probe(base::SteadyTime now) const;

  State state() const { return state_; }
  // When time alone changes something; the largest time: never.
  base::SteadyTime due() const;
  base::SteadyTime until() const { return until_; }  // of the newest doubt
  // Of the newest doubt: "unreachable", "failing" or "slow".
  std::string_view reason() const;

 private:
  State state_ = State::kClosed;
  Failure failure_ = Failure::kUnreachable;  // what the newest doubt is of
  std::uint32_t failures_ = 0;               // in a row
  base::SteadyTime until_{};
  std::uint32_t older_calls_ = 0;   // sent before it was half-open, as far as they have not ended
  base::SteadyTime probe_until_{};  // the probe under way counts until then; the epoch: none is
};

}  // namespace penstock::routing
