// How long a newcomer will wait for its place at one deployment: queued work over the service rate.
// Not for several threads at once; callers pass the time.
//
// A place is taken to run at a pace (work a second) that depends on how many run beside it, as an
// engine's step takes longer for a larger batch: the pace is learnt from each run that ends, for
// the mean number that ran while it did, in steps of doubling between which it is interpolated.
// From pace and work follows how long a request takes (D). With `ahead` requests before the
// newcomer:
//
//   by rate:   places come free evenly, one each D / places: the newcomer has the one after
//   `ahead`. by clock:  those that run end when their work is done, a place frees again D later,
//   and the
//              newcomer has the one after `ahead` in that order.
//
// The clock is right where durations can be foreseen, as with answers of one length that began
// together, and says nothing where they cannot: the estimate leans on it as far as runs have lately
// ended when they were foreseen to.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace penstock::admission {

class WaitModel {
 public:
  // Names one that runs, from started() until ended().
  using Run = std::uint32_t;

  // `work` as it was estimated: work_before() speaks of estimates, too, so that one that is wrong
  // for all is wrong for none.
  Run started(std::uint64_t work, base::SteadyTime now);
  // In whatever way; `counts` is false where its time says nothing, as it was cut short.
  void ended(Run run, base::SteadyTime now, bool counts = true);

  // `work_before`: of all that go before the newcomer; `places`: of all replicas together.
  std::chrono::milliseconds estimate(std::uint64_t work_before, std::size_t places,
                                     base::SteadyTime now) const;

  std::size_t running() const { return running_; }

 private:
  using Seconds = std::chrono::duration<double>;
  static constexpr std::size_t kSteps = 20;  // of running ones: up to half a million
  static constexpr std::size_t kSample = 64;

  struct Running {
    std::uint64_t work = 0;  // 0: a free slot
    base::SteadyTime since{};
    double beside = 0;  // beside_ when it began
  };
  // Work and time of the runs that ended, the newest counting most.
  struct Pace {
    double work = 0;
    double seconds = 0;
  };

  void pass(base::SteadyTime now);
  void learn(const Running& run, base::SteadyTime now);
  double pace(double running) const;  // work a second of one place; 0: not known
  double by_clock(double ahead, double pace, double places, base::SteadyTime now) const;
  double mean_work() const { return starts_ > 0 ? work_ / starts_ : 1; }

  std::vector<Running> runs_;
  std::vector<Run> free_;
  std::size_t running_ = 0;
  double beside_ = 0;      // integral of running_ over time, in seconds
  base::SteadyTime at_{};  // up to when
  std::array<Pace, kSteps> paces_{};
  double work_ = 0, starts_ = 0;  // of those that started, the newest counting most
  double surprise_ = 1;           // mean part by which a run's time differed from what was foreseen
};

}  // namespace penstock::admission
