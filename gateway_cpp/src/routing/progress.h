// Whether one replica gets on with the work that it has. Pure: its owner brings the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "routing/traits.h"

namespace penstock::routing {

// A replica has work when its engine says so, or when calls were sent since its counts last moved:
// one whose engine is done and whose reader is slow has none.
class Progress {
 public:
  void sent(base::SteadyTime now);
  void released();
  void answered(base::SteadyTime now);
  void report(const LoadReport& load, base::SteadyTime now);

  // It has work, and nothing moved for as long as `deadline`; 0: never.
  bool is_stuck(std::chrono::milliseconds deadline, base::SteadyTime now) const;
  // When it will be stuck if nothing moves; nothing without work, or where deadline is 0.
  std::optional<base::SteadyTime> due(std::chrono::milliseconds deadline) const;

 private:
  bool has_work() const { return engine_ > 0 || unmoved_ > 0; }

  std::uint64_t made_ = 0;     // tokens, prompt tokens and steps, by the newest report
  std::uint64_t engine_ = 0;   // sequences running and waiting
  std::uint32_t unmoved_ = 0;  // calls sent since made_ moved, as far as they are not released
  bool reported_ = false;      // without a report nothing can be said
  base::SteadyTime since_{};   // when it last moved, or its work began
};

}  // namespace penstock::routing
