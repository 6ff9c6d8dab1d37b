// Where the deployment that a request asked for cannot answer it: the rungs of its ladder, one
// after the other, until one takes it in. Each rung admits by its own rules; where none does, the
// client is told what the first one said.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;
using Kind = routing::Rung::Kind;

std::string text_of(const routing::Rung& rung) {
  return rung.kind == Kind::kTrim ? "trim" : "fallback:" + rung.deployment;
}

}  // namespace

// What engines die of goes to no other engine, whatever it is refused for: it was maybe not looked
// at yet.
Awaitable<void> RequestFlow::mark_suspect(Exchange& x) {
  if (x.danger.suspect || parts_.suspects.empty()) co_return;
  const base::MaybeError quarantined = co_await admit_suspect(x);
  if (quarantined) x.danger.suspect = true;
}

// The ladder is that of the deployment that was named, as it was then.
bool RequestFlow::begin_descent(Exchange& x, const base::Error& no) {
  const routing::Route& asked = x.named();
  if (asked.deployment->ladders.empty() || !x.may_degrade()) return false;
  const auto reason = x.danger.guilty ? std::optional(admission::DegradeReason::kEngineDead)
                                      : admission::degrade_reason(no, x.ask.endpoint->prompt_field);
  if (reason) x.descent = std::make_unique<Descent>(asked, *reason);
  return x.descent != nullptr;
}

// The first one counts, and one that stands where a prompt that was too long is so no more.
void RequestFlow::note_refusal(Exchange& x, const base::Error& no) {
  Descent& descent = *x.descent;
  const auto reason = admission::degrade_reason(no, x.ask.endpoint->prompt_field);
  const bool dead = x.danger.may_kill() || reason == admission::DegradeReason::kEngineDead;
  descent.no_engine = descent.no_engine || dead;
  if (reason && descent.is_turned_by(*reason)) {
    descent.walk.turn_to(x.danger.guilty ? admission::DegradeReason::kEngineDead : *reason);
  } else if (descent.rung != nullptr) {
    return;
  }
  descent.ending = {.error = no,
                    .deployment = x.record().deployment(),
                    .adapter = x.record().adapter(),
                    .replica = x.record().replica,
                    .estimated_wait = x.at.estimated_wait};
  if (x.attempts.is_under_way()) descent.ending.seen = x.attempts.call().seen();
}

// Null: none helps, or the time that the request has for its first event is over.
const routing::Rung* RequestFlow::next_rung(Exchange& x) {
  const auto limit = parts_.config.first_event_deadline;
  if (limit.count() > 0 && parts_.clock.steady_now() - x.admitted >= limit) return nullptr;
  return x.descent->walk.next([&](const std::string& name) {
    return name != x.record().deployment() && !x.has_left(name) && !is_passed_over(x, name);
  });
}

// Nobody is left whom it could wait for, and another deployment would take it.
bool RequestFlow::is_better_off_elsewhere(Exchange& x) {
  if (x.at.wanted.rest && !x.at.dispatcher->has_rest({})) return true;
  if (x.at.way == Way::kCanary && !x.is_at_home() && !x.danger.may_kill())
    return !x.at.dispatcher->is_ready_besides({});
  if (!x.has_ladder() || x.at.dispatcher->is_ready_besides({})) return false;
  // What it would end with: `no_replica_left`.
  const auto& last = x.attempts.last();
  const auto reason = last && x.attempts.failover().reached_any()
                          ? admission::degrade_reason(*last, x.ask.endpoint->prompt_field)
                          : admission::DegradeReason::kNoReadyReplica;
  return reason && has_rung(x, *reason);
}

// Whether another deployment would take it where this one does not, for this reason.
bool RequestFlow::has_rung(Exchange& x, admission::DegradeReason reason) {
  if (!x.has_ladder()) return false;
  const bool no_engine = x.danger.may_kill() || (x.descent && x.descent->no_engine);
  const routing::Route& asked = x.descent ? x.descent->asked : x.named();
  const auto takes_it = [&](const std::string& name) {
    if (name == x.record().deployment() || x.has_left(name)) return false;
    const auto found = elsewhere(x, asked, name, Way::kRung, no_engine);
    const auto* there = std::get_if<Elsewhere>(&found);
    return there && there->dispatcher->is_usable_for(there->route.adapter()) &&
           has_budget(x, *there);
  };
  if (x.descent && !x.descent->is_turned_by(reason)) return x.descent->walk.has_next(takes_it);
  return admission::LadderWalk(*asked.deployment, reason).has_next(takes_it);
}

bool RequestFlow::has_budget(const Exchange& x, const Elsewhere& there) {
  const routing::DeploymentRoute& route = *there.route.deployment;
  if (!budgets_of(route)) return true;
  const auto told =
      there.dispatcher->appraise(x.body_bytes, x.request.max_tokens, x.request.answers()).estimate;
  return x.at.account->has_budget(route, day_ask_of(x.request, *x.ask.endpoint, route, told));
}

// Its operator is told why; so is its client, but of no deployment that it may not name.
bool RequestFlow::is_passed_over(Exchange& x, const std::string& deployment) {
  const auto found = elsewhere(x, x.descent->asked, deployment, Way::kRung, x.descent->no_engine);
  const auto* why = std::get_if<routing::PassedOver>(&found);
  if (!why) return false;
  x.record().pass_over(deployment, routing::name(*why), x.settlement.age_us());
  if (*why != routing::PassedOver::kNotAllowed) x.descent->note(deployment, routing::name(*why));
  return true;
}

// To the next rung; false: none is left.
bool RequestFlow::climb_down(Exchange& x, const base::Error& no) {
  note_refusal(x, no);
  if (x.descent->rung != nullptr) x.descent->note(text_of(*x.descent->rung), cause_of(no));
  // The stable arm was not asked, as it would refuse it likewise: a rung does not answer for it.
  if (x.canary && x.at.way == Way::kCanary) x.canary->course.left(no);
  leave(x, no);
  const routing::Rung* rung = next_rung(x);
  x.descent->rung = rung;
  x.at.way = Way::kRung;
  return rung != nullptr;
}

base::MaybeError RequestFlow::enter_rung(Exchange& x) {
  const routing::Rung& rung = *x.descent->rung;
  if (rung.kind == Kind::kTrim) {
    x.is_cut = true;
    note_stay(x, Way::kRung, x.at.route);
    return std::nullopt;
  }
  auto found = elsewhere(x, x.descent->asked, rung.deployment, Way::kRung, x.descent->no_engine);
  auto* there = std::get_if<Elsewhere>(&found);
  if (!there) {
    x.record().pass_over(rung.deployment, routing::name(std::get<routing::PassedOver>(found)),
                         x.settlement.age_us());
    return gone_from_routes(rung.deployment);
  }
  enter(x, Way::kRung, std::move(*there));
  x.record().replica.clear();
  return std::nullopt;
}

// The client sees the refusal that it would have seen without a ladder, and comes back, if at all,
// when the first deployment told it to: the others need not wait for it.
base::Error RequestFlow::step_back(Exchange& x) {
  Descent::Ending& ending = x.descent->ending;
  note_answered_besides(x, ending.deployment);
  const auto told = std::ranges::find(x.left, ending.deployment, &Departure::deployment);
  if (told != x.left.end()) x.at.dispatcher = told->dispatcher;
  x.record().return_to(ending.deployment, ending.adapter, x.settlement.age_us());
  x.record().replica = std::move(ending.replica);
  x.at.estimated_wait = ending.estimated_wait;
  x.note_tokens(ending.seen);
  if (!x.descent->tried.empty()) {
    ending.error.message += " Nor could its ladder help: " + x.descent->tried + ".";
  }
  return std::move(ending.error);
}

// Nobody but that one has to wait for it to come back.
void RequestFlow::note_answered_besides(const Exchange& x, const std::string& deployment) {
  for (const Departure& left : x.left) {
    if (left.deployment != deployment) left.dispatcher->answered_elsewhere(x.at.wanted);
  }
}

// The answer begins: whether it is quite what was asked for. Those that have told it to come back
// need not wait for it.
void RequestFlow::note_degraded(Exchange& x) {
  using admission::DegradeReason;
  if (!x.left.empty()) note_answered_besides(x, x.record().deployment());
  const auto* rung = x.descent ? x.descent->rung : nullptr;
  RequestRecord& record = x.record();
  const upstream::Head& head = x.attempts.call().head();
  record.trimmed_messages = head.trimmed_messages;
  record.trimmed_tokens = head.trimmed_tokens;
  record.degraded = {};
  const bool is_fallback = rung != nullptr && rung->kind == Kind::kFallback;
  if (!is_fallback && !record.is_trimmed()) return;  // it did not have to be trimmed
  record.degraded =
      admission::name(x.descent ? x.descent->walk.reason() : DegradeReason::kContextLength);
  record.rung = is_fallback ? text_of(*rung) : "trim";
  record.asked = x.descent ? x.descent->asked.deployment->name : record.deployment();
}

// A rung has no more time than the request has left for its first event; 0: no limit.
milliseconds RequestFlow::within_deadline(const Exchange& x, milliseconds limit) {
  const auto most = parts_.config.first_event_deadline;
  if (!x.descent || most.count() == 0) return limit;
  const auto gone =
      std::chrono::duration_cast<milliseconds>(parts_.clock.steady_now() - x.admitted);
  const milliseconds left = std::max(most - gone, milliseconds(1));
  return limit.count() > 0 ? std::min(limit, left) : left;
}

}  // namespace penstock::proxy
