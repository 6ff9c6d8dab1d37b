#include "base/deployment_metrics.h"

#include <array>

namespace penstock::base {
namespace {

constexpr std::array<std::string_view, kResumeReasons> kReasonNames = {"kill", "hang", "crash",
                                                                       "lost", "hand_over"};
constexpr std::array<std::string_view, kResumeOutcomes> kResumeNames = {"resumed", "told",
                                                                        "client_left"};

}  // namespace

std::string_view name(ResumeReason reason) {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

std::string_view name(ResumeOutcome outcome) {
  return kResumeNames[static_cast<std::size_t>(outcome)];
}

void DeploymentMetrics::settled(Outcome outcome, unsigned status) {
  for (Settled& row : settled_) {
    if (row.outcome == outcome && row.status == status) return row.count.add();
  }
  const std::lock_guard lock(mutex_);
  settled_.emplace_back(outcome, status).count.add();
}

void DeploymentMetrics::ended(const RequestEnd& end, const Slo& objectives) {
  times_of(end).observe(end);
  const auto verdicts = judged(objectives, end);
  for (std::size_t i = 0; i < kObjectives; ++i) {
    if (verdicts[i] == Verdict::kNotJudged) continue;
    slo[i].requests.add();
    if (verdicts[i] == Verdict::kBad) slo[i].bad.add();
  }
}

RequestTimes& DeploymentMetrics::times_of(const RequestEnd& end) {
  for (RequestTimes& row : times_) {
    if (row.outcome() == end.outcome && row.operation() == end.operation) return row;
  }
  const std::lock_guard lock(mutex_);
  return times_.emplace_back(end.outcome, end.operation);
}

void DeploymentMetrics::dropped(std::string_view reason) {
  for (Dropped& row : dropped_) {
    if (row.reason == reason) return row.count.add();
  }
  const std::lock_guard lock(mutex_);
  dropped_.emplace_back(reason).count.add();
}

void DeploymentMetrics::degraded(std::string_view reason, std::string_view rung) {
  for (Degraded& row : degraded_) {
    if (row.reason == reason && row.rung == rung) return row.count.add();
  }
  constexpr std::string_view kOther = "other";
  if (degraded_.size() >= kMostDegraded && rung != kOther) return degraded(reason, kOther);
  const std::lock_guard lock(mutex_);
  degraded_.emplace_back(reason, rung).count.add();
}

std::uint64_t DeploymentMetrics::resumes(ResumeOutcome outcome) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kResumeReasons; ++i) {
    sum += resumes(static_cast<ResumeReason>(i), outcome);
  }
  return sum;
}

void DeploymentMetrics::note_estimate(std::chrono::nanoseconds estimated,
                                      std::chrono::nanoseconds real) {
  constexpr std::chrono::milliseconds kShort{100};
  if (real <= kShort) return;
  const auto off = std::chrono::abs(estimated - real);
  const double ratio = static_cast<double>(off.count()) / static_cast<double>(real.count());
  estimate_error.observe(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(ratio)));
}

}  // namespace penstock::base
