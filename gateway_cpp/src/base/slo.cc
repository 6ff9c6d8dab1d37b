#include "base/slo.h"

namespace penstock::base {
namespace {

constexpr std::array<std::string_view, kObjectives> kObjectiveNames = {"ttft_p50", "total_p99",
                                                                       "error_rate"};

Verdict within(std::chrono::nanoseconds took, std::chrono::milliseconds limit) {
  return took > limit ? Verdict::kBad : Verdict::kGood;
}

bool gave_up(const RequestEnd& end, std::chrono::milliseconds limit) {
  return end.outcome == Outcome::kCancelled && end.duration > limit;
}

Verdict of_ttft(const Slo& slo, const RequestEnd& end) {
  if (slo.ttft.count() == 0) return Verdict::kNotJudged;
  if (end.ttft && end.streamed) return within(*end.ttft, slo.ttft);
  return !end.ttft && gave_up(end, slo.ttft) ? Verdict::kBad : Verdict::kNotJudged;
}

Verdict of_total(const Slo& slo, const RequestEnd& end) {
  if (slo.total.count() == 0) return Verdict::kNotJudged;
  if (end.outcome == Outcome::kSucceeded) return within(end.duration, slo.total);
  return gave_up(end, slo.total) ? Verdict::kBad : Verdict::kNotJudged;
}

Verdict of_errors(const Slo& slo, const RequestEnd& end) {
  if (!slo.errors || end.own_limit) return Verdict::kNotJudged;
  switch (end.outcome) {
    case Outcome::kSucceeded:
      return Verdict::kGood;
    case Outcome::kFailed:
    case Outcome::kRejected:
      return Verdict::kBad;
    case Outcome::kCancelled:
    case Outcome::kInvalid:
      break;
  }
  return Verdict::kNotJudged;
}

}  // namespace

std::string_view name(Objective objective) {
  return kObjectiveNames[static_cast<std::size_t>(objective)];
}

std::array<Verdict, kObjectives> judged(const Slo& slo, const RequestEnd& end) {
  return {of_ttft(slo, end), of_total(slo, end), of_errors(slo, end)};
}

}  // namespace penstock::base
