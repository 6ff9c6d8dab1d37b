#include "admission/wait_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::admission {
namespace {

// How many runs a mean looks back, about.
constexpr double kMemory = 64;
constexpr double kShortMemory = 32;
// A pace looks back over the places at least twice, or the short ones of those that began together
// would make it seem too fast before the long ones end.
constexpr double kRounds = 2;
// Where runs have become others, a pace looks back over this part of that.
constexpr double kChanged = 1.0 / 8;
constexpr double kMostSeconds = 3600;
// Before anything was learnt: an answer of 256 tokens, 20 of them a second, where one that is
// generated is work of 4. Most engines are faster: who is told to come back then is let in.
constexpr double kUnseenWork = 4 * 256;
constexpr double kUnseenPace = 4 * 20;

void move_towards(double& mean, double value, double memory) { mean += (value - mean) / memory; }

// The part by which a value differs from what it was taken for, 1 at most.
double off_by(double value, double taken_for) {
  return std::min(1.0, std::abs(value / taken_for - 1));
}

// When so many have come free of places that free at `left`, sorted, and each `again` after that.
double time_of(double wanted, const double* left, std::size_t count, double again) {
  double least = 0;
  double most = left[count - 1] + (wanted / static_cast<double>(count) + 1) * again;
  for (int halving = 0; halving < 32; ++halving) {
    const double middle = (least + most) / 2;
    double freed = 0;
    for (std::size_t i = 0; i < count && left[i] <= middle; ++i) {
      freed += 1 + std::floor((middle - left[i]) / again);
    }
    (freed > wanted ? most : least) = middle;
  }
  return most;
}

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

}  // namespace

WaitModel::Run WaitModel::started(std::uint64_t work, base::SteadyTime now) {
  pass(now);
  if (free_.empty()) {
    free_.push_back(static_cast<Run>(runs_.size()));
    runs_.emplace_back();
  }
  const Run run = free_.back();
  free_.pop_back();
  ++running_;
  work = std::max<std::uint64_t>(work, 1);
  runs_[run] = {work, now, beside_};
  work_ += static_cast<double>(work) - work_ / kMemory;
  starts_ += 1 - starts_ / kMemory;
  move_towards(spread_, off_by(static_cast<double>(work), mean_work()), kShortMemory);
  return run;
}

void WaitModel::ended(Run run, base::SteadyTime now, bool counts) {
  pass(now);
  if (counts) learn(runs_[run], now);
  ends_[freed_++ % kLately] = beside_;
  runs_[run].work = 0;
  free_.push_back(run);
  --running_;
}

void WaitModel::pass(base::SteadyTime now) {
  if (now <= at_) return;
  if (running_ > 0) beside_ += Seconds(now - at_).count() * static_cast<double>(running_);
  at_ = now;
}

void WaitModel::learn(const Running& run, base::SteadyTime now) {
  const double seconds = Seconds(now - run.since).count();
  if (seconds <= 0) return;
  const auto work = static_cast<double>(run.work);
  const double running = std::max(1.0, (beside_ - run.beside) / seconds);
  const double known = learnt_pace(running);
  if (known > 0) move_towards(surprise_, off_by(seconds, work / known), kShortMemory);
  const double memory = std::max(kMemory, kRounds * running);
  learn_pace(running, work, seconds, differs(known) ? memory * kChanged : memory);
  ++ended_;
}

// How long requests lately took, in seconds, by Little's law: what ran, over how many ended; 0: too
// few have ended.
double WaitModel::lately() const {
  if (freed_ < kLately) return 0;
  return (beside_ - ends_[freed_ % kLately]) / kLately;
}

// Whether they took less than half of what the pace gives, or more than twice that.
bool WaitModel::differs(double pace) const {
  const double seconds = lately();
  if (seconds <= 0 || pace <= 0) return false;
  const double given = mean_work() / pace;
  return seconds < given / 2 || seconds > given * 2;
}

void WaitModel::learn_pace(double running, double work, double seconds, double memory) {
  const double step = std::min<double>(std::log2(running), kSteps - 1.5);
  const double forgotten = 1 / memory;
  const auto lower = static_cast<std::size_t>(step);
  for (const std::size_t i : {lower, lower + 1}) {
    const double share = 1 - std::abs(step - static_cast<double>(i));
    paces_[i].work += share * (work - paces_[i].work * forgotten);
    paces_[i].seconds += share * (seconds - paces_[i].seconds * forgotten);
  }
}

// Where nothing was learnt of so many, what was learnt of the nearest numbers counts.
double WaitModel::learnt_pace(double running) const {
  const double step = std::clamp<double>(std::log2(running), 0, kSteps - 1);
  for (double reach = 1; reach < 2 * kSteps; reach *= 2) {
    double sum = 0;
    double shares = 0;
    for (std::size_t i = 0; i < kSteps; ++i) {
      const double share = 1 - std::abs(step - static_cast<double>(i)) / reach;
      if (share <= 0 || paces_[i].seconds <= 0) continue;
      sum += share * paces_[i].work / paces_[i].seconds;
      shares += share;
    }
    if (shares > 0) return sum / shares;
  }
  return 0;
}

double WaitModel::pace(double running, base::SteadyTime now) const {
  const double learnt = learnt_pace(running);
  if (learnt > 0) return learnt;
  return mean_work() / std::max(mean_work() / kUnseenPace, oldest(now));
}

// How long the oldest has run, in seconds, of as many as ends() looks at.
double WaitModel::oldest(base::SteadyTime now) const {
  double most = 0;
  const std::size_t stride = runs_.size() / kSample + 1;
  for (std::size_t i = 0; i < runs_.size(); i += stride) {
    if (runs_[i].work > 0) most = std::max(most, Seconds(now - runs_[i].since).count());
  }
  return most;
}

double WaitModel::mean_work() const { return starts_ > 0 ? work_ / starts_ : kUnseenWork; }

WaitModel::Queue WaitModel::queue_of(std::uint64_t work_before, std::size_t places,
                                     base::SteadyTime now) const {
  const std::size_t used = running_ > 0 ? std::min(places, running_) : places;
  const auto most = static_cast<double>(std::max<std::size_t>(used, 1));
  return {.ahead = static_cast<double>(work_before) / mean_work(),
          .places = most,
          .pace = pace(most, now)};
}

double WaitModel::by_rate(const Queue& queue) const {
  return (queue.ahead + 1) * mean_work() / queue.pace / queue.places;
}

std::chrono::milliseconds WaitModel::estimate(std::uint64_t work_before, std::size_t places,
                                              base::SteadyTime now) const {
  const Queue queue = queue_of(work_before, places, now);
  double seconds = by_rate(queue);
  const double trust = std::max(0.0, 1 - 2 * surprise_ - spread_);
  if (trust > 0 && running_ > 0) seconds += trust * (by_clock(queue, now) - seconds);
  return in_milliseconds(seconds);
}

std::chrono::milliseconds WaitModel::at_most(std::uint64_t work_before, std::size_t places,
                                             base::SteadyTime now) const {
  const Queue queue = queue_of(work_before, places, now);
  const double seconds = by_rate(queue);
  return in_milliseconds(running_ > 0 ? std::max(seconds, by_clock(queue, now)) : seconds);
}

std::chrono::microseconds WaitModel::between(std::size_t places, base::SteadyTime now) const {
  const auto most = static_cast<double>(std::max<std::size_t>(places, 1));
  const double seconds = std::min(mean_work() / pace(most, now) / most, kMostSeconds);
  return std::chrono::ceil<std::chrono::microseconds>(Seconds(seconds));
}

std::uint32_t WaitModel::pace_of(std::size_t places, base::SteadyTime now) const {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  const auto most = static_cast<double>(std::max<std::size_t>(places, 1));
  return static_cast<std::uint32_t>(std::clamp(most * pace(most, now), 0.0, kMost));
}

double WaitModel::by_clock(const Queue& queue, base::SteadyTime now) const {
  Ends left{};
  const std::size_t count = ends(queue.pace, now, left);
  const double each = static_cast<double>(count) / static_cast<double>(running_);
  // The first to end beyond the number of places, as of replicas that go away, free none.
  const double beyond = (static_cast<double>(running_) - queue.places) * each;
  const auto freeing = std::min(static_cast<std::size_t>(beyond), count - 1);
  return time_of(queue.ahead * each, left.data() + freeing, count - freeing,
                 mean_work() / queue.pace);
}

// When the running ones end, soonest first, of a sample of them. Those that should have ended
// already will do so evenly within the time that runs are late by.
std::size_t WaitModel::ends(double pace, base::SteadyTime now, Ends& left) const {
  std::size_t count = 0;
  std::size_t late = 0;
  const std::size_t stride = runs_.size() / kSample + 1;
  for (std::size_t first = 0; first < stride; ++first) {
    for (std::size_t i = first; i < runs_.size() && count < kSample; i += stride) {
      const Running& run = runs_[i];
      if (run.work == 0) continue;
      const double whole = static_cast<double>(run.work) / pace;
      left[count] = whole - Seconds(now - run.since).count();
      if (left[count] <= 0) ++late;
      ++count;
    }
  }
  std::sort(left.begin(), left.begin() + count);
  const double late_by = 2 * surprise_ * mean_work() / pace;
  for (std::size_t i = 0; i < late; ++i) {
    left[i] = late_by * (static_cast<double>(i) + 0.5) / static_cast<double>(late);
  }
  std::sort(left.begin(), left.begin() + count);
  return count;
}

}  // namespace penstock::admission
