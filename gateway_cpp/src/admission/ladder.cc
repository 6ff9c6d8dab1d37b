#include "admission/ladder.h"

#include <algorithm>
#include <array>

namespace penstock::admission {
namespace {

using Kind = routing::Rung::Kind;

constexpr std::array<std::string_view, kDegradeReasons> kDegradeNames = {
    "token_budget_exceeded", "context_length_exceeded", "budget",
    "scaled_to_zero",        "deployment_failed",       "no_ready_replica",
    "model_loading",         "memory_pressure",         "queue_full",
    "wait_exceeded",         "queue_deadline",          "engine_dead",
    "upstream_failed"};
static_assert(static_cast<std::size_t>(DegradeReason::kUpstreamFailed) + 1 == kDegradeReasons);

// Of those whose names errors carry: not the last two.
std::optional<DegradeReason> named(std::string_view text) {
  const auto end = kDegradeNames.end() - 2;
  const auto found = std::find(kDegradeNames.begin(), end, text);
  if (found == end) return std::nullopt;
  return static_cast<DegradeReason>(found - kDegradeNames.begin());
}

bool is_engine_dead(const base::Error& error) {
  return error.kind == base::Kind::kEngineDead || error.kind == base::Kind::kQuarantined ||
         error.drop_reason == "suspect_must_wait";
}

bool helps(const routing::Rung& rung, DegradeReason reason) {
  return (rung.kind == Kind::kTrim) == is_too_long(reason);
}

// A reason's own ladder, else the one of all others; null: neither.
const std::vector<routing::Rung>* rungs_for(const routing::DeploymentRoute& asked,
                                            DegradeReason reason) {
  const std::vector<routing::Rung>* found = nullptr;
  for (const routing::Ladder& ladder : asked.ladders) {
    if (ladder.reason == name(reason)) return &ladder.rungs;
    if (ladder.reason.empty()) found = &ladder.rungs;
  }
  return found;
}

}  // namespace

std::string_view name(DegradeReason reason) {
  return kDegradeNames[static_cast<std::size_t>(reason)];
}

bool is_too_long(DegradeReason reason) {
  return reason == DegradeReason::kTokenBudget || reason == DegradeReason::kContextLength;
}

std::optional<DegradeReason> degrade_reason(const base::Error& error,
                                            std::string_view prompt_field) {
  if (is_engine_dead(error)) return DegradeReason::kEngineDead;
  const auto reason = named(error.drop_reason.empty() ? error.code : error.drop_reason);
  // An answer that is to be too long is no fault of the prompt's.
  if (reason == DegradeReason::kTokenBudget && error.param != prompt_field) return std::nullopt;
  if (reason && (!error.drop_reason.empty() || is_too_long(*reason))) return reason;
  const bool is_replicas =
      error.kind == base::Kind::kUpstreamFailed || error.kind == base::Kind::kDeadlineExceeded;
  if (!is_replicas || error.fault != base::Fault::kUpstream) return std::nullopt;
  return DegradeReason::kUpstreamFailed;
}

LadderWalk::LadderWalk(const routing::DeploymentRoute& asked, DegradeReason reason)
    : asked_(&asked), reason_(reason), rungs_(rungs_for(asked, reason)) {}

void LadderWalk::turn_to(DegradeReason reason) {
  reason_ = reason;
  rungs_ = rungs_for(*asked_, reason);
  at_ = 0;
}

bool LadderWalk::was_tried(const routing::Rung& rung) const {
  return std::ranges::any_of(tried_, [&rung](const routing::Rung* one) { return *one == rung; });
}

const routing::Rung* LadderWalk::find(const Fits& fits, std::size_t& at) const {
  while (rungs_ != nullptr && at < rungs_->size()) {
    const routing::Rung& rung = (*rungs_)[at++];
    if (rung.kind == Kind::kReject) at = rungs_->size();
    if (rung.kind == Kind::kReject || !helps(rung, reason_) || was_tried(rung)) continue;
    if (rung.kind == Kind::kTrim) return &rung;
    if (rung.deployment != asked_->name && fits(rung.deployment)) return &rung;
  }
  return nullptr;
}

const routing::Rung* LadderWalk::next(const Fits& fits) {
  const routing::Rung* rung = find(fits, at_);
  if (rung != nullptr) tried_.push_back(rung);
  return rung;
}

bool LadderWalk::has_next(const Fits& fits) const {
  std::size_t at = at_;
  return find(fits, at) != nullptr;
}

}  // namespace penstock::admission
