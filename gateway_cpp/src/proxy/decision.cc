#include "proxy/decision.h"

#include <algorithm>
#include <utility>

namespace penstock::proxy {

namespace {

const std::string kNone;

uint32_t milliseconds_of(std::chrono::nanoseconds time) {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace

void StayRecord::clear() {
  for (std::string* text : {&deployment, &adapter, &by, &left_for, &arm}) text->clear();
  way = Way::kNamed;
  passed_over = has_turn = false;
  entered_us = 0;
  prompt_estimate = completion_estimate = 0;
  priority = base::Priority::kNormal;
  turn = {};
  waited = {};
  slo = {};
}

void AttemptRecord::clear() {
  replica.clear();
  error.clear();
  reason = {};
  pick.begin({});
  sent_us = first_us = ended_us = 0;
  queued_us = prefill_us = decode_us = cached_tokens = 0;
}

void RequestRecord::clear() {
  static_cast<RequestFacts&>(*this) = {};
  for (std::string* text : {&model, &prompt_version, &model_version, &replica, &error_code,
                            &drop_reason, &message, &rung, &asked}) {
    text->clear();
  }
  stays.clear();
  attempts.clear();
  legs.clear();
  gaps.clear();
  shadows.clear();
  resumption.reset();
  next_pick.begin({});
}

StayRecord* RequestRecord::here() {
  for (size_t i = stays.size(); i > 0; --i) {
    StayRecord& stay = stays.all()[i - 1];
    if (!stay.passed_over) return &stay;
  }
  return nullptr;
}

const StayRecord* RequestRecord::here() const { return const_cast<RequestRecord*>(this)->here(); }

const std::string& RequestRecord::deployment() const {
  const StayRecord* stay = here();
  return stay == nullptr ? kNone : stay->deployment;
}

const std::string& RequestRecord::adapter() const {
  const StayRecord* stay = here();
  return stay == nullptr ? kNone : stay->adapter;
}

std::chrono::milliseconds RequestRecord::estimated_wait() const {
  const StayRecord* stay = here();
  return stay == nullptr ? std::chrono::milliseconds(0) : stay->turn.estimated_wait;
}

base::Slo RequestRecord::slo() const {
  const StayRecord* stay = here();
  return stay == nullptr ? base::Slo{} : stay->slo;
}

// What it was not even asked at gives way first, then a rung: what it asked for is told longest.
StayRecord& RequestRecord::add_stay() {
  const auto all = stays.all();
  auto gives = std::ranges::find(all, true, &StayRecord::passed_over);
  if (gives == all.end()) gives = std::ranges::find(all, Way::kRung, &StayRecord::way);
  return stays.add_of(kMostStays,
                      gives == all.end() ? 1 : static_cast<size_t>(gives - all.begin()));
}

StayRecord& RequestRecord::stay(Way way, std::string_view at, std::string_view with_adapter,
                                uint64_t now_us) {
  const bool is_fresh = !stays.empty() && !stays.back().has_turn && !stays.back().passed_over &&
                        stays.back().left_for.empty() && stays.back().deployment == at;
  StayRecord& stay = is_fresh ? stays.back() : add_stay();
  stay.way = way;
  stay.deployment = at;
  stay.adapter = with_adapter;
  if (!is_fresh) stay.entered_us = now_us;
  return stay;
}

void RequestRecord::leave(std::string_view arm, std::string_view why) {
  StayRecord* stay = here();
  if (stay == nullptr || !stay->left_for.empty()) return;
  stay->left_for = why;
  if (arm != stay->deployment) stay->arm = arm;
}

void RequestRecord::pass_over(std::string_view other, std::string_view why, uint64_t now_us) {
  StayRecord& stay = add_stay();
  stay.deployment = other;
  stay.left_for = why;
  stay.passed_over = true;
  stay.entered_us = now_us;
}

void RequestRecord::return_to(std::string before, std::string with_adapter, uint64_t now_us) {
  StayRecord& again = add_stay();
  for (const StayRecord& stay : stays.all()) {
    if (&stay == &again || stay.deployment != before) continue;
    again.slo = stay.slo;
    if (!stay.has_turn) continue;
    again.turn = stay.turn;
    again.priority = stay.priority;
    again.has_turn = true;
  }
  again.way = Way::kReturned;
  again.deployment = std::move(before);
  again.adapter = std::move(with_adapter);
  again.entered_us = now_us;
}

void RequestRecord::send(std::string_view to, std::string_view reason, uint64_t now_us) {
  AttemptRecord& attempt = attempts.add_of(kMostAttempts, 0);
  attempt.replica = to;
  attempt.reason = reason;
  attempt.pick.take(next_pick);
  attempt.sent_us = now_us;
}

void RequestRecord::end_attempt(std::string_view error, uint64_t now_us) {
  if (attempts.empty() || attempts.back().ended_us != 0) return;
  attempts.back().error = error;
  attempts.back().ended_us = std::max<uint64_t>(now_us, 1);
}

// The longest are kept, in their order.
void RequestRecord::note_gap(std::chrono::nanoseconds gap, uint64_t now_us) {
  const uint32_t ms = milliseconds_of(gap);
  if (gaps.size() == kMostGaps) {
    const auto shortest = std::ranges::min_element(gaps, {}, &GapRecord::ms);
    if (shortest->ms >= ms) return;
    gaps.erase(shortest);
  }
  gaps.push_back({now_us, ms});
}

void RequestRecord::forget_degraded() {
  degraded = {};
  rung.clear();
  trimmed_messages = trimmed_tokens = 0;
}

std::string left_text(const RequestRecord& record) {
  std::string text;
  for (const StayRecord& stay : record.stays.all()) {
    if (stay.left_for.empty()) continue;
    if (!text.empty()) text += ", ";
    text.append(stay.left()).append("=").append(stay.left_for);
  }
  return text;
}

std::string trimmed_text(const RequestRecord& record) {
  if (!record.is_trimmed()) return {};
  return "messages=" + std::to_string(record.trimmed_messages) +
         ", tokens=" + std::to_string(record.trimmed_tokens);
}

std::string legs_text(const RequestRecord& record) {
  std::string text;
  for (const LegRecord& leg : record.legs) {
    if (!text.empty()) text += ", ";
    text.append(leg.call).append("@").append(leg.replica).append("=");
    text += leg.failure.empty() ? std::to_string(leg.tokens) : leg.failure;
    text.append("/").append(std::to_string(milliseconds_of(leg.took))).append("ms");
  }
  return text;
}

std::unique_ptr<RequestRecord> RecordPool::take() {
  if (kept_.empty()) return std::make_unique<RequestRecord>();
  std::unique_ptr<RequestRecord> record = std::move(kept_.back());
  kept_.pop_back();
  return record;
}

void RecordPool::give(std::unique_ptr<RequestRecord> record) {
  if (kept_.size() == kKept) return;
  record->clear();
  kept_.push_back(std::move(record));
}

}  // namespace penstock::proxy
