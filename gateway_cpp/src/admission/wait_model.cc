#include "admission/wait_model.h"

#include <algorithm>
#include <cmath>

namespace penstock::admission {
namespace {

constexpr double kKept = 1 - 1.0 / 64;
constexpr double kSurpriseKept = 1 - 1.0 / 32;
constexpr double kEnough = 0.5;  // of a run's weight, before a step's pace is believed

}  // namespace

WaitModel::Run WaitModel::started(std::uint64_t work, base::SteadyTime now) {
  pass(now);
  if (free_.empty()) {
    free_.push_back(static_cast<Run>(runs_.size()));
    runs_.emplace_back();
  }
  const Run run = free_.back();
  free_.pop_back();
  runs_[run] = {std::max<std::uint64_t>(work, 1), now, beside_};
  ++running_;
  work_ = work_ * kKept + static_cast<double>(runs_[run].work);
  starts_ = starts_ * kKept + 1;
  return run;
}

void WaitModel::ended(Run run, base::SteadyTime now, bool counts) {
  pass(now);
  if (counts) learn(runs_[run], now);
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
  if (const double known = pace(running); known > 0) {
    const double off = std::min(1.0, std::abs(seconds * known / work - 1));
    surprise_ = surprise_ * kSurpriseKept + off * (1 - kSurpriseKept);
  }
  const double step = std::min<double>(std::log2(running), kSteps - 2);
  const auto lower = static_cast<std::size_t>(step);
  for (const std::size_t i : {lower, lower + 1}) {
    const double share = 1 - std::abs(step - static_cast<double>(i));
    const double kept = std::pow(kKept, share);
    paces_[i].work = paces_[i].work * kept + share * work;
    paces_[i].seconds = paces_[i].seconds * kept + share * seconds;
  }
}

double WaitModel::pace(double running) const {
  const double step = std::clamp<double>(std::log2(running), 0, kSteps - 1);
  double work = 0;
  double seconds = 0;
  for (double reach = 1; reach < kSteps && seconds <= 0; reach *= 2) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      const double share = 1 - std::abs(step - static_cast<double>(i)) / reach;
      if (share <= 0 || paces_[i].seconds <= 0) continue;
      work += share * paces_[i].work / paces_[i].seconds;
      seconds += share;
    }
  }
  return seconds > 0 ? work / seconds : 0;
}

std::chrono::milliseconds WaitModel::estimate(std::uint64_t work_before, std::size_t places,
                                              base::SteadyTime now) const {
  const auto most = static_cast<double>(std::max<std::size_t>(places, 1));
  const double speed = pace(most);
  if (speed <= 0) return std::chrono::milliseconds(0);
  const double ahead = static_cast<double>(work_before) / mean_work();
  const double by_rate = (ahead + 1) * mean_work() / speed / most;
  const double trust = std::max(0.0, 1 - 2 * surprise_);
  double seconds = by_rate;
  if (trust > 0) seconds += trust * (by_clock(ahead, speed, most, now) - by_rate);
  return std::chrono::ceil<std::chrono::milliseconds>(Seconds(std::clamp(seconds, 0.0, 3600.0)));
}

// When those that run will have ended, sorted, of no more than kSample of them.
double WaitModel::by_clock(double ahead, double pace, double places, base::SteadyTime now) const {
  std::array<double, kSample> left{};
  std::size_t count = 0;
  const std::size_t stride = std::max<std::size_t>(1, runs_.size() / kSample);
  for (std::size_t i = 0; i < runs_.size() && count < kSample; i += stride) {
    if (runs_[i].work == 0) continue;
    const double whole = static_cast<double>(runs_[i].work) / pace;
    left[count++] = std::max(0.0, whole - Seconds(now - runs_[i].since).count());
  }
  const double rounds = std::floor(ahead / places);
  const double rank = ahead - rounds * places + (static_cast<double>(running_) - places);
  const double at = rank / static_cast<double>(std::max<std::size_t>(running_, 1));
  const double again = rounds * mean_work() / pace;
  if (rank < 0 || count == 0) return again;
  const auto nth = std::min(static_cast<std::size_t>(at * static_cast<double>(count)), count - 1);
  std::nth_element(left.begin(), left.begin() + nth, left.begin() + count);
  return again + left[nth];
}

}  // namespace penstock::admission
