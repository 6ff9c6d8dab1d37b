#include "proxy/routing_question.h"

#include <utility>

#include "base/printable.h"

namespace penstock::proxy {

using admission::ProgramOutcome;

void RoutingQuestion::take(const v1::EngineCall& call) {
  if (!is_open()) return;
  const std::string& seq_id = call.seq_id();
  if (seq_id.size() > kLongestSeqId || !base::is_printable_ascii(seq_id)) {
    return fail(ProgramOutcome::kNonsense, "its seq_id is longer than 64 bytes, or not printable");
  }
  if (++calls_ > kMostCalls || waiting_.size() >= kMostWaiting) {
    return fail(ProgramOutcome::kNonsense, "it makes too many engine calls for one request");
  }
  waiting_.push_back(call);
}

void RoutingQuestion::take(const v1::RouteDecision& decision) {
  if (!is_open()) return;
  if (!decision.error().empty()) {
    return fail(admission::fault_named(decision.error()), decision.detail());
  }
  decision_ = decision;
  waiting_.clear();
  state_.advance(Asked::kDecided);
}

void RoutingQuestion::fail(ProgramOutcome why, std::string_view detail) {
  if (state() == Asked::kFailed) return;
  fault_ = why;
  detail_ = detail;
  waiting_.clear();
  state_.advance(Asked::kFailed);
}

std::optional<v1::EngineCall> RoutingQuestion::next_call() {
  if (waiting_.empty()) return std::nullopt;
  v1::EngineCall call = std::move(waiting_.front());
  waiting_.pop_front();
  return call;
}

void RoutingQuestion::engines_work(bool work, base::SteadyTime now) {
  if (work == works_) return;
  if (work) own_left_ -= now - since_;
  works_ = work;
  since_ = now;
}

std::optional<base::SteadyTime> RoutingQuestion::due() const {
  if (works_) return std::nullopt;
  return since_ + own_left_;
}

}  // namespace penstock::proxy
