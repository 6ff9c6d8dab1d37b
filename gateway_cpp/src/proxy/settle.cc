#include "proxy/settle.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "admission/decision.h"
#include "base/printable.h"
#include "openai/endpoints.h"

namespace penstock::proxy {
namespace {

// That its tenant, or an operator, set: it is no failure of the deployment.
bool is_own_limit(std::string_view drop_reason) {
  using admission::DropReason;
  constexpr std::array kOwn = {DropReason::kRateLimited, DropReason::kQuota, DropReason::kBudget,
                               DropReason::kScaledToZero, DropReason::kTokenBudget};
  return std::ranges::any_of(kOwn, [&](DropReason own) { return name(own) == drop_reason; });
}

}  // namespace

base::Outcome outcome_of(const base::Error& error) {
  if (error.kind == base::Kind::kClientGone) return base::Outcome::kCancelled;
  if (!error.drop_reason.empty()) return base::Outcome::kRejected;
  return error.fault == base::Fault::kClient ? base::Outcome::kInvalid : base::Outcome::kFailed;
}

std::string cause_of(const base::Error& error) {
  constexpr size_t kLongest = 64;
  std::string cause = error.drop_reason.empty() ? error.code : error.drop_reason;
  const bool is_short = !error.param.empty() && error.param.size() <= kLongest;
  return is_short && base::is_printable_ascii(error.param) ? cause + "(" + error.param + ")"
                                                           : cause;
}

Settlement::Settlement(const base::Clock& clock, base::Log& log, base::MetricsShard& metrics,
                       runtime::GatewayState& state, base::SteadyTime received)
    : clock_(clock),
      log_(log),
      metrics_(metrics),
      state_(state),
      received_(received),
      phase_start_(received) {
  phases_.entered[0] = true;
}

Settlement::~Settlement() {
  const auto duration = enter(base::Phase::kSettle) - received_;
  count(duration);
  enter(base::Phase::kSettle);
  if (log_.enabled(base::Level::kInfo)) log_line(duration);
}

base::SteadyTime Settlement::enter(base::Phase phase) {
  const auto now = clock_.steady_now();
  phases_.spent[static_cast<size_t>(phase_)] += now - phase_start_;
  phase_start_ = now;
  phase_ = phase;
  phases_.entered[static_cast<size_t>(phase)] = true;
  return now;
}

uint32_t Settlement::enter_gateway() {
  inside_ = true;
  return state_.in_flight.fetch_add(1, std::memory_order_relaxed);
}

void Settlement::leave_gateway() {
  if (std::exchange(inside_, false)) state_.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

void Settlement::dropped(std::string_view reason) { deployment()->dropped(reason); }

const std::shared_ptr<base::DeploymentMetrics>& Settlement::opening() {
  opening_ = deployment();
  opening_->in_flight.add(1);
  return opening_;
}

void Settlement::left(std::string_view arm, const base::Error& why) {
  passed_over(arm, cause_of(why));
  if (!opening_) return;
  count_attempts(*opening_);
  opening_->in_flight.add(-1);
  std::erase_if(left_, [this](const Left& one) { return one.metrics == opening_; });
  left_.push_back({std::exchange(opening_, nullptr), outcome_of(why), why.status});
}

void Settlement::passed_over(std::string_view deployment, std::string_view why) {
  if (!record.left.empty()) record.left += ", ";
  record.left.append(deployment).append("=").append(why);
}

void Settlement::count_left() {
  for (const Left& one : left_) {
    if (one.metrics->name() != record.deployment) one.metrics->settled(one.outcome, one.status);
  }
}

void Settlement::first_byte() {
  if (!record.ttft) record.ttft = age();
}

void Settlement::last_byte() {
  if (record.ttft) record.generation = age() - *record.ttft;
}

void Settlement::failed(const base::Error& error) {
  record.outcome = outcome_of(error);
  record.error_code = error.code;
  record.drop_reason = error.drop_reason;
}

std::chrono::nanoseconds Settlement::age() const { return clock_.steady_now() - received_; }

const std::shared_ptr<base::DeploymentMetrics>& Settlement::deployment() {
  if (opening_ != nullptr) return opening_;
  return metrics_.deployment(record.deployment.empty() ? base::kUnknownDeployment
                                                       : std::string_view(record.deployment));
}

void Settlement::count(std::chrono::nanoseconds duration) {
  leave_gateway();
  if (!record.degraded.empty()) {
    metrics_.deployment(record.asked)->degraded(record.degraded, record.rung);
  }
  count_left();
  base::DeploymentMetrics& numbers = *deployment();
  if (opening_ != nullptr) numbers.in_flight.add(-1);
  numbers.settled(record.outcome, record.status);
  metrics_.tenant(record.tenant).settled[static_cast<size_t>(record.outcome)].add();
  numbers.ended(end(duration), record.slo);
  if (record.attempts > elsewhere_) count_answer(numbers);
}

// Its settling is not over yet, and is not told of.
base::RequestEnd Settlement::end(std::chrono::nanoseconds duration) const {
  base::RequestEnd end{.outcome = record.outcome,
                       .duration = duration,
                       .phases = phases_,
                       .trace_id = record.trace_id,
                       .at = clock_.wall_now(),
                       .streamed = record.events > 0,
                       .own_limit = is_own_limit(record.drop_reason)};
  if (const auto* endpoint = openai::find_endpoint(record.path))
    end.operation = endpoint->operation;
  if (record.queue_wait.count() > 0) end.queue_wait = record.queue_wait;
  if (record.attempts == elsewhere_) return end;
  end.ttft = record.ttft;
  if (record.generation.count() > 0 && record.completion_tokens > 1) {
    end.token_time = record.generation / (record.completion_tokens - 1);
  }
  return end;
}

void Settlement::count_attempts(base::DeploymentMetrics& numbers) {
  const unsigned attempts = record.attempts - std::exchange(elsewhere_, record.attempts);
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

void Settlement::log_line(std::chrono::nanoseconds duration) {
  const auto phase = [this](base::Phase which) {
    return phases_.spent[static_cast<size_t>(which)];
  };
  // Those that few lines have, each of four with the ones that go with it.
  constexpr size_t kMost = 11;
  std::vector<base::Field> more;
  const auto add = [&more](std::initializer_list<base::Field> fields) {
    if (more.empty()) more.reserve(kMost);
    more.insert(more.end(), fields);
  };
  if (!record.degraded.empty() || !record.left.empty()) {
    add({{"left", record.left},
         {"degraded", record.degraded},
         {"rung", record.rung},
         {"asked", record.asked},
         {"trimmed", record.trimmed}});
  }
  if (!record.program.empty()) add({{"program", record.program}, {"legs", record.legs}});
  if (!record.canary.empty()) {
    add({{"canary", record.canary}, {"arm", record.of_candidate ? "candidate" : "stable"}});
  }
  if (record.resumption && record.resumption->count > 0) {
    add({{"resumes", record.resumption->resumed}, {"resumed_from", record.resumption->from}});
  }
  log_.info("request settled",
            {{"request_id", record.request_id},
             {"client_request_id", record.client_request_id},
             {"trace_id", record.trace_id},
             {"path", record.path},
             {"tenant", record.tenant},
             {"key_id", record.key_id},
             {"client", record.client},
             {"deployment", record.deployment},
             {"adapter", record.adapter},
             {"model_version", record.model_version},
             {"replica", record.replica},
             {"status", record.status},
             {"outcome", base::name(record.outcome)},
             {"error_code", record.error_code},
             {"drop_reason", record.drop_reason},
             {"attempts", record.attempts},
             {"queue_wait_ms", record.queue_wait},
             {"estimated_wait_ms", record.estimated_wait.count()},
             {"ttft_ms", record.ttft.value_or(std::chrono::nanoseconds(0))},
             {"duration_ms", duration},
             {"events", record.events},
             {"bytes", record.bytes},
             {"prompt_tokens", record.prompt_tokens},
             {"completion_tokens", record.completion_tokens},
             {"cached_tokens", record.cached_tokens},
             {"parse_ms", phase(base::Phase::kParse)},
             {"resolve_ms", phase(base::Phase::kResolve)},
             {"admit_ms", phase(base::Phase::kAdmit)},
             {"select_ms", phase(base::Phase::kSelect)},
             {"open_ms", phase(base::Phase::kOpen)},
             {"stream_ms", phase(base::Phase::kStream)},
             {"settle_ms", phase(base::Phase::kSettle)}},
            more);
}

}  // namespace penstock::proxy
