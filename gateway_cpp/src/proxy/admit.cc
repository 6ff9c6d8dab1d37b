// Phases admit and select: whether a request may run, and its place on a replica. Whatever says no
// first is what the client is told; the order is that of admission::DropReason.
#include <chrono>
#include <utility>
#include <variant>

#include "openai/prefix_blocks.h"
#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "routing/hashing.h"

namespace penstock::proxy {

using admission::DegradeReason;
using std::chrono::milliseconds;

namespace {

// As most clients know the limit of an answer's tokens.
std::string_view limit_field(const openai::Endpoint& endpoint) {
  return endpoint.limits[1].empty() ? endpoint.limits[0] : endpoint.limits[1];
}

}  // namespace

base::MaybeError RequestFlow::admit_to_gateway(Exchange& x) {
  x.admitted = x.waits_from = x.at.entered = x.settlement.enter(base::Phase::kAdmit);
  x.delivery.note_written(parts_.timers.now());
  if (x.request.form == openai::AnswerForm::kStream) {
    arm_unless_none(x.heartbeat, parts_.config.heartbeat);
  }
  describe(x);
  appraise(x);
  base::MaybeError no = admit_at_door(x);
  return no ? no : admit_by_tenant(x);
}

// What the decision needs to know of the request.
void RequestFlow::describe(Exchange& x) {
  const admission::Tenant& tenant = *x.caller().tenant;
  x.at.wanted.tenant = tenant.id;
  x.at.wanted.priority = tenant.granted(x.ask.priority);
  x.at.wanted.adapter = x.record().adapter();
  x.at.wanted.pick = &x.record().next_pick;
  x.at.wanted.session = x.session_hash();
  x.at.wanted.share = x.at.route.deployment->canary.empty() ? 0 : x.share();
  const std::string& body = x.large ? *x.large->text : x.ask.body;
  x.at.wanted.key = x.caller().key_id;
  x.at.wanted.body = body;
  x.at.wanted.prefix.clear();
  if (x.at.route.deployment->selection_policy != "prefix_aware") return;
  x.at.wanted.prefix = openai::prefix_blocks(
      body, *x.ask.endpoint, routing::hash_text(tenant.cache_salt + x.at.wanted.adapter));
}

// Counted before it is compared: however many come at once, no more get in than may.
base::MaybeError RequestFlow::admit_at_door(Exchange& x) {
  const admission::DoorLoad load{.draining = parts_.state.ending.load(std::memory_order_relaxed),
                                 .in_flight = x.settlement.enter_gateway(),
                                 .max_in_flight = parts_.config.max_in_flight};
  const auto no = admission::decide_at_door(load);
  if (!no) return std::nullopt;
  x.settlement.leave_gateway();
  return refused(x, *no);
}

// What it will cost where it goes.
void RequestFlow::appraise(Exchange& x) {
  x.body_bytes = x.large ? x.large->text->size() : x.ask.body.size();
  const auto appraisal =
      x.at.dispatcher->appraise(x.body_bytes, x.request.max_tokens, x.request.answers());
  x.at.wanted.estimate = appraisal.estimate;
  x.at.least_prompt = appraisal.least_prompt;
  StayRecord& stay = *x.record().here();
  stay.prompt_estimate = static_cast<uint32_t>(appraisal.estimate.prompt);
  stay.completion_estimate = static_cast<uint32_t>(appraisal.estimate.completion);
  stay.priority = x.at.wanted.priority;
}

// A candidate may cost more than what was asked for, and that its tenant has no money for it is no
// fault of either: then it is asked as if it had no share of the canary.
base::MaybeError RequestFlow::admit_by_tenant(Exchange& x) {
  const auto reserve = [&x] {
    return x.at.account->reserve(x.at.wanted.estimate.tokens(), x.day_ask(), x.at.entered);
  };
  auto no = reserve();
  const bool is_dear = no && no->reason == admission::DropReason::kQuota;
  if (is_dear && x.at.way == Way::kCanary && !x.is_at_home()) {
    x.record().leave(x.record().deployment(), admission::name(no->reason));
    x.canary.reset();
    if (auto gone = enter_asked(x)) return gone;
    describe(x);
    appraise(x);
    no = reserve();
  }
  return no ? refused(x, *no) : std::nullopt;
}

base::MaybeError RequestFlow::admit_to_deployment(Exchange& x) {
  const routing::DeploymentRoute& route = *x.at.route.deployment;
  if (const auto no = x.at.account->reserve_budget(route, x.day_ask())) return refused(x, *no);
  // From the candidate of its own deployment, to which it was admitted: it keeps its turn.
  const bool was_here = !x.left.empty() && x.left.back().dispatcher == x.at.dispatcher;
  if (x.at.way == Way::kReturned && was_here) return std::nullopt;
  const admission::DeploymentAsk asked{
      .deployment = route.name,
      .why_unavailable = route.availability_detail,
      .priority = x.at.wanted.priority,
      .least_prompt = x.at.least_prompt,
      .max_tokens = x.request.max_tokens,
      .choices = x.request.choices,
      .limits = route.limits,
      .trims = x.trims(),
      .has_rung = x.at.dispatcher->turns_away() && has_rung(x, DegradeReason::kWaitExceeded),
      .prompt_field = x.ask.endpoint->prompt_field,
      .max_tokens_field = limit_field(*x.ask.endpoint)};
  const auto outcome =
      x.at.dispatcher->admit(x.at.turn(), x.at.wanted, asked, [&x] { return x.make_waker(); });
  StayRecord& stay = *x.record().here();
  stay.turn = outcome.turn;
  stay.has_turn = true;
  if (outcome.refusal) {
    x.at.account->leave_budget();
    return refused(x, *outcome.refusal);
  }
  x.at.queued();
  x.at.estimated_wait = outcome.turn.estimated_wait;
  arm_unless_none(x.queue_deadline, within_deadline(x, route.limits.queue_deadline));
  return std::nullopt;
}

base::MaybeError RequestFlow::refused(Exchange& x, const admission::Refusal& refusal) {
  x.settlement.dropped(admission::name(refusal.reason));
  const routing::DeploymentRoute& route = *x.at.route.deployment;
  return admission::refusal_error(route.name, refusal, route.availability_detail);
}

// Leaves with a place for the next attempt: the one that it was admitted to, or another.
Awaitable<base::MaybeError> RequestFlow::select(Exchange& x) {
  if (x.danger.suspect) {
    base::MaybeError over = co_await select_for_suspect(x);
    if (over || x.at.has_place()) co_return over;
  }
  if (x.at.has() != Has::kTurn) {
    const auto refused = x.attempts.failover().refused();
    const bool waits =
        x.at.dispatcher->again(x.at.turn(), x.at.wanted, {refused.begin(), refused.end()},
                               [&x] { return x.make_waker(); });
    if (!waits) co_return no_replica_left(x);
    x.at.queued();
    const auto limit = x.at.route.deployment->limits.queue_deadline;
    arm_unless_none(x.queue_deadline, within_deadline(x, limit));
  }
  base::MaybeError over;
  if (!x.at.was_given_place()) over = co_await wait_for_turn(x);
  if (!over) over = take_place(x);
  co_return over;
}

// A client that leaves frees its turn at once. One that is kept waiting for a stream has it opened.
Awaitable<base::MaybeError> RequestFlow::wait_for_turn(Exchange& x) {
  while (!x.at.was_given_place()) {
    if (x.stop() != Stop::kNo) {
      if (x.stop() == Stop::kDraining) {
        co_return refused(x, {admission::DropReason::kDraining, std::chrono::seconds(1)});
      }
      auto error = stop_error(x.stop());
      if (x.stop() == Stop::kClientLeft) {
        error.drop_reason = admission::name(admission::DropReason::kClientGone);
        x.settlement.dropped(admission::name(admission::DropReason::kClientGone));
      }
      co_return error;
    }
    if (x.queue_deadline.fired()) {
      if (!x.at.take_place()) co_return queue_deadline_error(x);
      break;  // one has come at the last moment
    }
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.stop());
    if (is_better_off_elsewhere(x)) {
      x.at.leave_queue();
      co_return no_replica_left(x);
    }
    co_await x.reply.signal().wait();
  }
  co_return std::nullopt;
}

base::MaybeError RequestFlow::take_place(Exchange& x) {
  x.settlement.enter(base::Phase::kSelect);
  if (x.at.take_place()) return std::nullopt;
  return gone_from_routes(x.at.route.deployment->name);  // while it waited
}

// Of those that it may go to. What it failed with last says nothing where it reached nobody.
base::MaybeError RequestFlow::no_replica_left(Exchange& x) {
  if (x.attempts.last() && x.attempts.failover().reached_any()) return x.attempts.last();
  return refused(x, {admission::DropReason::kNoReadyReplica, std::chrono::seconds(2)});
}

base::MaybeError RequestFlow::queue_deadline_error(Exchange& x) {
  if (x.attempts.last()) return x.attempts.last();
  const auto waited =
      std::chrono::duration_cast<milliseconds>(parts_.clock.steady_now() - x.at.entered);
  return refused(x, x.at.dispatcher->deadline_over(x.at.wanted, waited));
}

}  // namespace penstock::proxy
