#include "admission/canary_end.h"

#include <algorithm>

#include "admission/decision.h"

namespace penstock::admission {
namespace {

constexpr std::array<std::string_view, kCanaryFaults + 1> kFaultNames = {
    "5xx", "broken_stream", "engine_dead", "no_place", "refused", "timeout", ""};

constexpr std::array<std::string_view, kCanaryFinishes> kFinishNames = {
    "content_filter", "empty", "function_call", "length", "other", "stop", "tool_calls"};

// Whoever is asked, the answer is the same: the gateway's door, the tenant's limits, a request that
// may not be anywhere while another one is.
bool is_of_no_arm(std::string_view drop_reason) {
  constexpr std::array kReasons = {DropReason::kDraining, DropReason::kGatewayFull,
                                   DropReason::kRateLimited, DropReason::kQuota,
                                   DropReason::kClientGone};
  return drop_reason == "suspect_must_wait" ||
         std::ranges::any_of(kReasons, [&](DropReason one) { return name(one) == drop_reason; });
}

bool is_nobodys(const base::Error& error) {
  switch (error.kind) {
    case base::Kind::kClientGone:
    case base::Kind::kClientSlow:
    case base::Kind::kKeyRevoked:
    case base::Kind::kQuarantined:
    case base::Kind::kDraining:
      return true;
    default:
      return is_of_no_arm(error.drop_reason);
  }
}

CanaryFault fault_before_first_event(const base::Error& error) {
  constexpr unsigned kTooMany = 429;
  constexpr unsigned kServers = 500;  // from here on it is no refusal, whosever fault it is
  if (error.kind == base::Kind::kDeadlineExceeded) return CanaryFault::kTimeout;
  if (error.kind == base::Kind::kEngineDead || error.code == "engine_dead") {
    return CanaryFault::kEngineDead;
  }
  if (error.fault == base::Fault::kClient && error.status < kServers) return CanaryFault::kRefused;
  const bool has_no_place = !error.drop_reason.empty() || error.status == kTooMany ||
                            error.kind == base::Kind::kOverloaded;
  return has_no_place ? CanaryFault::kNoPlace : CanaryFault::kServerError;
}

CanaryFinish finish_of(std::string_view word) {
  const auto known = std::ranges::find(kFinishNames, word);
  const auto finish = static_cast<CanaryFinish>(known - kFinishNames.begin());
  const bool is_word = known != kFinishNames.end() && finish != CanaryFinish::kEmpty;
  return is_word ? finish : CanaryFinish::kOther;
}

// With fewer tokens than two for each of its choices, one at least has no more than its end.
bool is_empty(const CanaryWords& words) {
  const auto stops = [](const std::string& word) { return finish_of(word) == CanaryFinish::kStop; };
  const std::size_t least = words.finish_reasons.size() * (words.counts_end ? 2 : 1);
  return words.completion_tokens && *words.completion_tokens < least &&
         std::ranges::all_of(words.finish_reasons, stops);
}

}  // namespace

std::string_view name(CanaryFault fault) { return kFaultNames[static_cast<std::size_t>(fault)]; }

std::string_view name(CanaryFinish finish) {
  return kFinishNames[static_cast<std::size_t>(finish)];
}

bool is_bad(CanaryFinish finish) {
  return finish == CanaryFinish::kContentFilter || finish == CanaryFinish::kLength ||
         finish == CanaryFinish::kEmpty;
}

CanaryFault canary_fault(const base::Error& error, bool begun) {
  if (is_nobodys(error)) return CanaryFault::kNobodys;
  return begun ? CanaryFault::kBrokenStream : fault_before_first_event(error);
}

std::optional<CanaryFinish> canary_finish(const CanaryWords& words) {
  if (words.finish_reasons.empty()) return std::nullopt;
  for (const std::string& word : words.finish_reasons) {
    if (const CanaryFinish finish = finish_of(word); is_bad(finish)) return finish;
  }
  return is_empty(words) ? CanaryFinish::kEmpty : finish_of(words.finish_reasons.front());
}

void CanaryCourse::left(const base::Error& why) {
  if (departures_ < left_.size()) left_[departures_] = canary_fault(why, false);
  ++departures_;
}

void CanaryCourse::failed(const base::Error& why, bool begun) {
  end_ = End::kFailed;
  failure_ = canary_fault(why, begun);
  begun_ = begun;
}

std::optional<CanaryFault> CanaryCourse::fault_at(std::size_t n) const {
  if (n < departures_) return left_[n];
  if (end_ == End::kAnswered) return std::nullopt;
  return failure_;
}

CanaryCourse::Outcome CanaryCourse::outcome(bool candidate) const {
  if (candidate && departures_ > 0) return of_candidate();
  const auto fault = fault_at(0);
  if (!fault) return {.verdict = Verdict::kAnswered};
  if (*fault == CanaryFault::kNobodys) return {};
  if (*fault != CanaryFault::kRefused) return {.verdict = Verdict::kBad, .fault = *fault};
  // What the candidate refuses the stable arm was not asked: it may be either's fault.
  return {.verdict = candidate ? Verdict::kNothing : Verdict::kRefused};
}

// The candidate could not answer it, and the stable arm was asked.
CanaryCourse::Outcome CanaryCourse::of_candidate() const {
  const CanaryFault fault = left_[0];
  const auto then = fault_at(1);
  const bool is_invalid = then == CanaryFault::kRefused;
  if (fault == CanaryFault::kNobodys) return {};
  if (fault == CanaryFault::kRefused) {
    if (is_invalid) return {.verdict = Verdict::kRefused};
    const bool was_answered = !then || (begun_ && departures_ == 1);
    if (!was_answered) return {};
  } else if (is_invalid) {
    return {};
  }
  return {.verdict = Verdict::kBad, .fault = fault, .saved = !then};
}

}  // namespace penstock::admission
