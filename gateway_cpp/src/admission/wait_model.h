// How long a newcomer will wait for its place at one deployment: queued work over the service rate.
// Not for several threads at once; callers pass the time.
//
// A place is taken to run at a pace (work a second) that depends on how many run beside it, as an
// engine's step takes longer for a larger batch. The pace is learnt from each run that ends, for
// the mean number that ran while it did, in steps of doubling with interpolation between them: so
// what a quiet hour showed says nothing of a full engine. Where places lately came free at quite
// another rate than that gives, the old runs are forgotten sooner: one long run weighs as much as
// many short ones. Pace and work give the time that a request takes (D). The newcomer, with `ahead`
// requests before it, is then told a mean of two answers:
//
//   by rate:   places come free evenly, one each D / places, and it has the one after `ahead`.
//   by clock:  each that runs ends when its work is done, its place frees again each D after that,
//              and the newcomer has the one after `ahead` in this order.
//
// The clock is right where durations can be foreseen, as with answers of one length that began
// together, and worse than nothing where they cannot. It counts as far as runs have lately ended
// when they were foreseen to, and were of one size.
//
// Until the first run has ended, a place is taken to run as those of a busy engine do, but no
// faster than the oldest run shows: what has run for so long is not done sooner.
//
// Nothing can be foreseen of few places with answers whose length nobody knows: one that waits for
// the next of four answers with exponential lengths is told its mean, and half of them are off by
// more than 60 %. Estimates get better the more go before.
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

  // `work` as it was estimated, in the unit of TokenEstimate::work(): work_before speaks of
  // estimates, too, so that one that is wrong for all is wrong for none.
  Run started(std::uint64_t work, base::SteadyTime now);
  // In whatever way; `counts` is false where its time says nothing, as it was cut short.
  void ended(Run run, base::SteadyTime now, bool counts = true);

  // For one that has to wait. `work_before`: of all that go before it; `places`: of all replicas
  // together, of which those that do not run are taken to be of no use now.
  std::chrono::milliseconds estimate(std::uint64_t work_before, std::size_t places,
                                     base::SteadyTime now) const;

  // The longer one of the two answers: what it may be while nobody knows which is right.
  std::chrono::milliseconds at_most(std::uint64_t work_before, std::size_t places,
                                    base::SteadyTime now) const;

  // How long after one of so many places the next comes free, in the mean.
  std::chrono::microseconds between(std::size_t places, base::SteadyTime now) const;

  // What so many places together run in a second, in the unit of work.
  std::uint32_t pace_of(std::size_t places, base::SteadyTime now) const;

  // Until a run has ended, estimates are guesses.
  bool has_learnt() const { return ended_ > 0; }
  // Until some more have, nobody knows whether runs end when they are foreseen to.
  bool is_sure() const { return ended_ >= kSure; }

  std::size_t running() const { return running_; }

 private:
  using Seconds = std::chrono::duration<double>;
  static constexpr std::size_t kSure = 16;    // runs
  static constexpr std::size_t kSteps = 20;   // doublings of running ones: to half a million
  static constexpr std::size_t kLately = 16;  // ends
  static constexpr std::size_t kSample = 64;  // of the running ones, that the clock looks at
  using Ends = std::array<double, kSample>;   // seconds from now

  struct Running {
    std::uint64_t work = 0;  // 0: nothing runs here
    base::SteadyTime since{};
    double beside = 0;  // beside_ when it began
  };
  // Work and time of runs that ended, the newest counting most.
  struct Pace {
    double work = 0;
    double seconds = 0;
  };

  // What is before a newcomer.
  struct Queue {
    double ahead = 0;   // requests
    double places = 0;  // at least 1
    double pace = 0;    // of each
  };

  void pass(base::SteadyTime now);
  Queue queue_of(std::uint64_t work_before, std::size_t places, base::SteadyTime now) const;
  void learn(const Running& run, base::SteadyTime now);
  void learn_pace(double running, double work, double seconds, double memory);
  double lately() const;
  bool differs(double pace) const;
  double learnt_pace(double running) const;  // of one place; 0: not known
  double pace(double running, base::SteadyTime now) const;
  double oldest(base::SteadyTime now) const;
  double mean_work() const;
  std::size_t ends(double pace, base::SteadyTime now, Ends& left) const;
  // Both in seconds; by_clock() where something runs.
  double by_rate(const Queue& queue) const;
  double by_clock(const Queue& queue, base::SteadyTime now) const;

  std::vector<Running> runs_;
  std::vector<Run> free_;  // of runs_
  std::size_t running_ = 0;
  double beside_ = 0;                   // running_ summed up over time, in seconds
  base::SteadyTime at_{};               // up to when
  std::size_t ended_ = 0;               // of which something was learnt
  std::array<double, kLately> ends_{};  // beside_ at the last ones, in a ring
  std::size_t freed_ = 0;               // ends of any kind
  std::array<Pace, kSteps> paces_{};
  double work_ = 0;  // of those that started, the newest counting most
  double starts_ = 0;
  double spread_ = 0;    // mean part by which their works differ from the mean
  double surprise_ = 1;  // mean part by which times differed from what was foreseen
};

}  // namespace penstock::admission
