#include "proxy/resume_rule.h"

#include "proxy/failover.h"

namespace penstock::proxy {

namespace {

using Source = upstream::CallFailure::Source;

// How a replica says that it stopped working on an answer for no fault of it.
bool was_stopped(const upstream::CallFailure& failure) {
  const auto& code = failure.error.code();
  return failure.stopped || code == "draining" || code == "engine_stopped";
}

}  // namespace

std::optional<ResumeReason> resume_reason(const upstream::CallFailure& failure) {
  if (failure.source == Source::kUnreachable) return std::nullopt;  // it never had it
  if (failure.source != Source::kReplica) return ResumeReason::kLost;
  if (!engine_died(failure)) {
    return was_stopped(failure) ? std::optional(ResumeReason::kLost) : std::nullopt;
  }
  switch (end_of(failure)) {
    case admission::EngineEnd::kKilled:
      return ResumeReason::kKill;
    case admission::EngineEnd::kHung:
      return ResumeReason::kHang;
    default:  // an engine that never had it did not die of it
      return engine_died_with(failure) ? ResumeReason::kCrash : ResumeReason::kLost;
  }
}

GoesOn goes_on(const BrokenAnswer& answer) {
  using How = GoesOn::How;
  if (!answer.resumable) return {How::kNot, "it is not resumable"};
  const bool moves = answer.reason == ResumeReason::kHandOver;
  if (answer.resumes >= kMostResumes && !moves) return {How::kNot, "it was resumed twice"};
  if (answer.quarantined) return {How::kNot, "it is quarantined"};
  if (answer.was_suspect) return {How::kApart};
  if (answer.reason != ResumeReason::kCrash) return {How::kAtOnce};
  const bool apart = answer.crashes > 1 || answer.tokens < kOldEnough;
  return {apart ? How::kApart : How::kAtOnce};
}

}  // namespace penstock::proxy
