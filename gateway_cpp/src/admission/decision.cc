#include "admission/decision.h"

#include <algorithm>
#include <array>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Row {
  DropReason reason;
  std::string_view name;
  base::Kind kind;  // as which the client is told, unless kind_of() knows better
};
constexpr std::array<Row, kDropReasons> kDrops = {{
    {DropReason::kDraining, "draining", base::Kind::kDraining},
    {DropReason::kGatewayFull, "gateway_full", base::Kind::kOverloaded},
    {DropReason::kRateLimited, "rate_limited", base::Kind::kRateLimitExceeded},
    {DropReason::kQuota, "quota", base::Kind::kInsufficientQuota},
    {DropReason::kBudget, "budget", base::Kind::kBudgetUsedUp},
    {DropReason::kScaledToZero, "scaled_to_zero", base::Kind::kScaledToZero},
    {DropReason::kFailed, "deployment_failed", base::Kind::kDeploymentFailed},
    {DropReason::kNoReadyReplica, "no_ready_replica", base::Kind::kOverloaded},
    {DropReason::kModelLoading, "model_loading", base::Kind::kModelLoading},
    {DropReason::kMemoryPressure, "memory_pressure", base::Kind::kShedLoad},
    {DropReason::kTokenBudget, "token_budget_exceeded", base::Kind::kTokenBudget},
    {DropReason::kQueueFull, "queue_full", base::Kind::kShedLoad},
    {DropReason::kWaitExceeded, "wait_exceeded", base::Kind::kShedLoad},
    {DropReason::kQueueDeadline, "queue_deadline", base::Kind::kQueueDeadline},
    {DropReason::kClientGone, "client_gone", base::Kind::kClientGone},
}};
constexpr const Row& row_of(DropReason reason) { return kDrops[static_cast<std::size_t>(reason)]; }
static_assert(std::ranges::all_of(kDrops,
                                  [](const Row& row) { return &row_of(row.reason) == &row; }));

// When a client is told to come back.
constexpr milliseconds kSoonest = seconds(1);
constexpr milliseconds kLatest = seconds(60);

// High priority has a fifth more, rounded up.
template <class Number>
Number for_priority(Number limit, base::Priority priority) {
  return priority == base::Priority::kHigh ? limit + (limit + 4) / 5 : limit;
}

// Nothing is ready: why, and for how long.
Refusal without_replica(const DeploymentLoad& load) {
  const milliseconds ready_in = retry_in(load.ready_in.value_or(seconds(5)));
  switch (load.availability) {
    case base::Availability::kScaledToZero:
      return {DropReason::kScaledToZero};
    case base::Availability::kFailed:
      return {DropReason::kFailed, load.ready_in ? ready_in : milliseconds(0)};
    case base::Availability::kLoading:
      return {DropReason::kModelLoading, ready_in};
    case base::Availability::kServing:
    case base::Availability::kUnknown:
      break;
  }
  if (load.starting > 0) return {DropReason::kModelLoading, ready_in};
  return {DropReason::kNoReadyReplica, seconds(2)};
}

Refusal without_budget(milliseconds back_in) {
  const auto wait = std::chrono::ceil<seconds>(std::max(back_in, kSoonest));
  return {DropReason::kBudget, retry_in(wait),
          "it has money and tokens again in " + std::to_string(wait.count()) + " s"};
}

Refusal over_budget(std::string detail, std::string_view param) {
  return {DropReason::kTokenBudget, milliseconds(0), std::move(detail), param};
}

std::optional<Refusal> beyond_tokens(const DeploymentAsk& ask) {
  const routing::Limits& limits = ask.limits;
  const bool is_cut = ask.trims || limits.max_prompt_tokens == 0;
  if (!is_cut && ask.least_prompt > limits.max_prompt_tokens) {
    return over_budget("its prompt has at least " + std::to_string(ask.least_prompt) +
                           " tokens, and max_prompt_tokens is " +
                           std::to_string(limits.max_prompt_tokens) + "; send a shorter one",
                       ask.prompt_field);
  }
  const std::uint64_t max_tokens = ask.max_tokens.value_or(0);
  if (limits.max_completion_tokens != 0 && max_tokens > limits.max_completion_tokens) {
    return over_budget("it asks for " + std::to_string(max_tokens) +
                           " tokens, and max_completion_tokens is " +
                           std::to_string(limits.max_completion_tokens) + "; ask for fewer",
                       ask.max_tokens_field);
  }
  if (limits.max_n != 0 && ask.choices > limits.max_n) {
    return over_budget("it asks for " + std::to_string(ask.choices) + " choices, and max_n is " +
                           std::to_string(limits.max_n) + "; ask for fewer",
                       "n");
  }
  return std::nullopt;
}

std::string waiting(const DeploymentLoad& load) {
  std::string text =
      std::to_string(load.queued) + (load.queued == 1 ? " request waits" : " requests wait");
  if (load.due == 0) return text;
  return text + ", " + std::to_string(load.due) +
         (load.due == 1 ? " that was refused is due back first"
                        : " that were refused are due back first");
}

std::string long_wait(const DeploymentLoad& load) {
  const milliseconds wait = load.estimated_wait + load.wait_for_due;
  const milliseconds most = longest_wait(load);
  const std::string text = "it would wait " + std::to_string(wait.count()) + " ms";
  return most == wait ? text : text + ", or up to " + std::to_string(most.count());
}

Placement place_in_queue(const DeploymentAsk& ask, const DeploymentLoad& load) {
  const std::uint32_t most = for_priority(ask.limits.max_queued, ask.priority);
  if (load.queued + load.due >= most) {
    return Refusal{DropReason::kQueueFull, retry_in(load.estimated_wait),
                   waiting(load) + ", and max_queued is " + std::to_string(most)};
  }
  const milliseconds budget = wait_budget(ask);
  if (!load.wait_is_guessed &&
      turns_away(load.turns_away && ask.has_rung, longest_wait(load), budget)) {
    return Refusal{DropReason::kWaitExceeded, retry_in(load.estimated_wait),
                   long_wait(load) + ", and wait_budget_ms is " + std::to_string(budget.count())};
  }
  return Queued{load.estimated_wait};
}

std::string because(std::string_view detail) {
  return detail.empty() ? std::string() : ": " + std::string(detail);
}

base::Kind kind_of(const Refusal& refusal) {
  if (refusal.may_pass) return base::Kind::kOverloaded;
  if (refusal.reason == DropReason::kTokenBudget && refusal.param == "n")
    return base::Kind::kInvalidValue;
  return row_of(refusal.reason).kind;
}

std::string text_of(const std::string& model, const Refusal& refusal, std::string_view why) {
  switch (refusal.reason) {
    case DropReason::kDraining:
      return "this gateway is shutting down; try again, another one answers";
    case DropReason::kGatewayFull:
      return "this gateway serves as many requests as it may" + because(refusal.detail) +
             "; try again";
    case DropReason::kRateLimited:
      return "the limit of this key's tenant is reached" + because(refusal.detail);
    case DropReason::kQuota:
      return "this key's tenant has used up its quota" + because(refusal.detail);
    case DropReason::kBudget:
      if (refusal.may_pass) {
        return "the budget of model " + model + " is reserved for others" +
               because(refusal.detail) + "; try again";
      }
      return "model " + model + " has used up its budget of the day" + because(refusal.detail) +
             "; ask its operator for more, or come back then";
    case DropReason::kScaledToZero:
      return "model " + model +
             " is scaled to 0 replicas; it answers once an operator gives it some";
    case DropReason::kFailed:
      return "model " + model + " has failed" + because(why) +
             (refusal.retry_after.count() > 0 ? "; it is started once more" : "; ask its operator");
    case DropReason::kNoReadyReplica:
      return "no replica of " + model + " is ready; try again in a few seconds";
    case DropReason::kModelLoading:
      return "model " + model + " is still loading; try again in a few seconds";
    case DropReason::kMemoryPressure:
      return "the memory of every replica of " + model + " is in use" + because(refusal.detail) +
             "; try again";
    case DropReason::kTokenBudget:
      return "this request is too large for " + model + because(refusal.detail);
    case DropReason::kQueueFull:
    case DropReason::kWaitExceeded:
      return "every replica of " + model + " is busy" + because(refusal.detail) + "; try again";
    case DropReason::kQueueDeadline:
      return "no replica of " + model + " had room in time" + because(refusal.detail) +
             "; try again";
    case DropReason::kClientGone:
      break;
  }
  return "the client left while the request waited for " + model;
}

}  // namespace

std::string_view name(DropReason reason) { return row_of(reason).name; }

milliseconds retry_in(milliseconds wait) { return std::clamp(wait, kSoonest, kLatest); }

bool turns_away(bool before, milliseconds wait, milliseconds budget) {
  if (budget.count() == 0) return false;
  constexpr int kLeaves = 5;  // parts of the budget, of which four are left
  return wait > budget || (before && wait * kLeaves >= budget * (kLeaves - 1));
}

milliseconds longest_wait(const DeploymentLoad& load) {
  return std::max(load.estimated_wait, load.wait_within) + load.wait_for_due;
}

milliseconds wait_budget(const DeploymentAsk& ask) {
  return milliseconds(for_priority(ask.limits.wait_budget.count(), ask.priority));
}

std::optional<Refusal> decide_at_door(const DoorLoad& load) {
  if (load.draining) return Refusal{DropReason::kDraining, kSoonest};
  if (load.max_in_flight != 0 && load.in_flight >= load.max_in_flight) {
    return Refusal{DropReason::kGatewayFull, kSoonest,
                   std::to_string(load.in_flight) + " are under way"};
  }
  return std::nullopt;
}

Refusal beyond_budget(Refusal of_day) {
  of_day.may_pass = of_day.reason == DropReason::kRateLimited;
  of_day.reason = DropReason::kBudget;
  of_day.retry_after = retry_in(of_day.retry_after);
  return of_day;
}

Placement decide_place(const DeploymentAsk& ask, const DeploymentLoad& load) {
  if (load.budget_back_in) return without_budget(*load.budget_back_in);
  if (load.ready == 0) return without_replica(load);
  if (load.under_pressure >= load.ready) {
    return Refusal{
        DropReason::kMemoryPressure, retry_in(load.estimated_wait),
        "of " + std::to_string(load.ready) + " ready replicas all are above kv_pressure"};
  }
  if (auto refusal = beyond_tokens(ask)) return *std::move(refusal);
  if (load.with_room > 0 && load.queued == 0) return Admitted{};
  return place_in_queue(ask, load);
}

Refusal queue_deadline_over(milliseconds waited, milliseconds estimated_wait) {
  return {
      DropReason::kQueueDeadline, retry_in(estimated_wait),
      "it waited " + std::to_string(waited.count()) + " ms, as long as queue_deadline_ms allows"};
}

base::Error refusal_error(std::string_view deployment, const Refusal& refusal,
                          std::string_view why_unavailable) {
  const std::string model = "`" + std::string(deployment) + "`";
  base::Error error = base::make_error(kind_of(refusal), text_of(model, refusal, why_unavailable),
                                       std::string(refusal.param));
  error.drop_reason = name(refusal.reason);
  error.retry_after = refusal.retry_after;
  // One is started again by itself, though it has ended time and again.
  if (refusal.reason == DropReason::kFailed) error.client_may_retry = error.retry_after.count() > 0;
  return error;
}

}  // namespace penstock::admission
