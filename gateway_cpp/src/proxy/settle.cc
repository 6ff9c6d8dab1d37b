#include "proxy/settle.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "admission/decision.h"
#include "base/printable.h"
#include "proxy/record_bytes.h"
#include "proxy/record_log.h"

namespace penstock::proxy {
namespace {

// That its tenant, or an operator, set: it is no failure of the deployment.
bool is_own_limit(std::string_view drop_reason) {
  using admission::DropReason;
  constexpr std::array kOwn = {DropReason::kRateLimited, DropReason::kQuota, DropReason::kBudget,
                               DropReason::kScaledToZero, DropReason::kTokenBudget};
  return std::ranges::any_of(kOwn, [&](DropReason own) { return name(own) == drop_reason; });
}

// The one at fault, where it may be the name of one.
std::string_view field_of(const base::Error& error) {
  constexpr size_t kLongest = 64;
  const bool is_name = error.param.size() <= kLongest && base::is_printable_ascii(error.param);
  return is_name ? std::string_view(error.param) : std::string_view();
}

// Of what its client is told, what may be kept: nothing that may be of its body.
std::string kept_message(const base::Error& error) {
  if (!error.quotes) return error.message;
  const std::string_view field = field_of(error);
  return field.empty() ? std::string() : std::string("param: ").append(field);
}

}  // namespace

base::Outcome outcome_of(const base::Error& error) {
  if (error.kind == base::Kind::kClientGone) return base::Outcome::kCancelled;
  if (!error.drop_reason.empty()) return base::Outcome::kRejected;
  return error.fault == base::Fault::kClient ? base::Outcome::kInvalid : base::Outcome::kFailed;
}

std::string cause_of(const base::Error& error) {
  std::string cause = error.drop_reason.empty() ? error.code : error.drop_reason;
  const std::string_view field = field_of(error);
  return field.empty() ? cause : cause.append("(").append(field).append(")");
}

uint64_t us_since_epoch(base::WallTime time) {
  const auto since = time.time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

void hand_on(const RequestRecord& record, observe::RecordSink& sink) {
  constexpr size_t kRoom = 4096;                      // of nearly all of them
  static thread_local std::string room(kRoom, '\0');  // one for all records of a thread
  const std::string_view bytes = write_record(record, room);
  sink.take(facts_of(record), bytes);
}

Settlement::Settlement(const Settling& with, base::SteadyTime received)
    : kept_(with.records.take()),
      record(*kept_),
      with_(with),
      received_(received),
      phase_start_(received) {
  record.phases.entered[0] = true;
}

Settlement::~Settlement() {
  record.duration = enter(base::Phase::kSettle) - received_;
  const base::WallTime now = clock().wall_now();
  record.received_us = us_since_epoch(now - record.duration);
  count(now);
  enter(base::Phase::kSettle);
  log_record(record, with_.log);
  if (with_.sink != nullptr) {
    record.end_attempt(record.error_code, age_us(received_ + record.duration));
    hand_on(record, *with_.sink);
  }
  with_.records.give(std::move(kept_));
}

uint64_t Settlement::age_us(base::SteadyTime now) const {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now - received_).count());
}

base::SteadyTime Settlement::enter(base::Phase phase) {
  const auto now = clock().steady_now();
  record.phases.spent[static_cast<size_t>(phase_)] += now - phase_start_;
  phase_start_ = now;
  phase_ = phase;
  record.phases.entered[static_cast<size_t>(phase)] = true;
  return now;
}

uint32_t Settlement::enter_gateway() {
  inside_ = true;
  return with_.state.in_flight.fetch_add(1, std::memory_order_relaxed);
}

void Settlement::leave_gateway() {
  if (std::exchange(inside_, false)) with_.state.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

void Settlement::dropped(std::string_view reason) { deployment()->dropped(reason); }

const std::shared_ptr<base::DeploymentMetrics>& Settlement::opening() {
  opening_ = deployment();
  opening_->in_flight.add(1);
  return opening_;
}

void Settlement::left(std::string_view arm, const base::Error& why) {
  record.leave(arm, cause_of(why));
  if (!opening_) return;
  count_attempts(*opening_);
  opening_->in_flight.add(-1);
  std::erase_if(left_, [this](const Left& one) { return one.metrics == opening_; });
  left_.push_back({std::exchange(opening_, nullptr), outcome_of(why), why.status});
}

void Settlement::count_left() {
  for (const Left& one : left_) {
    if (one.metrics->name() != record.deployment()) one.metrics->settled(one.outcome, one.status);
  }
}

void Settlement::first_byte() {
  if (record.ttft) return;
  record.ttft = age();
  if (!record.attempts.empty()) {
    record.attempts.back().first_us = age_us(received_ + *record.ttft);
  }
}

void Settlement::last_byte() {
  if (record.ttft) record.generation = age() - *record.ttft;
}

void Settlement::failed(const base::Error& error) {
  record.outcome = outcome_of(error);
  record.error_code = error.code;
  record.drop_reason = error.drop_reason;
  record.quarantined = error.kind == base::Kind::kQuarantined;
  if (error.kind != base::Kind::kClientGone) record.message = kept_message(error);
}

std::chrono::nanoseconds Settlement::age() const { return clock().steady_now() - received_; }

const std::shared_ptr<base::DeploymentMetrics>& Settlement::deployment() {
  if (opening_ != nullptr) return opening_;
  const std::string_view name = record.deployment();
  return with_.metrics.deployment(name.empty() ? base::kUnknownDeployment : name);
}

void Settlement::count(base::WallTime now) {
  leave_gateway();
  if (!record.degraded.empty()) {
    with_.metrics.deployment(record.asked)->degraded(record.degraded, record.rung);
  }
  count_left();
  base::DeploymentMetrics& numbers = *deployment();
  if (opening_ != nullptr) numbers.in_flight.add(-1);
  numbers.settled(record.outcome, record.status);
  with_.metrics.tenant(record.tenant).settled[static_cast<size_t>(record.outcome)].add();
  numbers.ended(end(now), record.slo());
  if (record.attempts_made > elsewhere_) count_answer(numbers);
}

// Its settling is not over yet, and is not told of.
base::RequestEnd Settlement::end(base::WallTime now) const {
  base::RequestEnd end{.outcome = record.outcome,
                       .operation = record.operation,
                       .duration = record.duration,
                       .phases = record.phases,
                       .trace_id = record.trace_id,
                       .at = now,
                       .streamed = record.streamed,
                       .own_limit = is_own_limit(record.drop_reason)};
  if (record.queue_wait.count() > 0) end.queue_wait = record.queue_wait;
  if (record.attempts_made == elsewhere_) return end;
  end.ttft = record.ttft;
  if (record.generation.count() > 0 && record.completion_tokens > 1) {
    end.token_time = record.generation / (record.completion_tokens - 1);
  }
  return end;
}

void Settlement::count_attempts(base::DeploymentMetrics& numbers) {
  const unsigned attempts = record.attempts_made - std::exchange(elsewhere_, record.attempts_made);
  if (attempts == 0) return;
  numbers.attempts.add(attempts);
  numbers.failovers.add(attempts - 1 - (record.resumption ? record.resumption->attempts : 0));
}

// Of what came from replicas.
void Settlement::count_answer(base::DeploymentMetrics& numbers) {
  numbers.events.add(record.events);
  numbers.bytes.add(record.bytes);
  count_attempts(numbers);
  const bool is_whole = record.outcome == base::Outcome::kSucceeded;
  if (is_whole && record.cached_tokens > 0) numbers.prefix_hits.add();
  if (record.engine_ttft.count() > 0) numbers.engine_ttft.observe(record.engine_ttft);
  if (record.generation.count() == 0) return;
  numbers.generation.observe(record.generation);
  numbers.silence.observe(record.silence);
}

}  // namespace penstock::proxy
