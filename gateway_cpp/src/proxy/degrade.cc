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

std::string trimmed_text(const upstream::Head& head) {
  if (head.trimmed_messages == 0 && head.trimmed_tokens == 0) return {};
  return "messages=" + std::to_string(head.trimmed_messages) +
         ", tokens=" + std::to_string(head.trimmed_tokens);
}

}  // namespace

// The client and its tenant decide: the one by its header, the other for all of its requests.
bool RequestFlow::may_degrade(const Exchange& x) {
  return x.ask.may_degrade && !x.account->caller().tenant->degrade_never;
}

// Whether its prompt may lose turns.
bool RequestFlow::trims(const Exchange& x) {
  return x.is_cut || (x.route.deployment->trims && may_degrade(x));
}

// What it ends with; nothing: a rung has taken it in.
Awaitable<RequestFlow::Failed> RequestFlow::degrade(Exchange& x, base::Error no) {
  if (!x.descent && !begin_descent(x, no)) co_return no;
  for (;;) {
    // Nor does another one help where this gateway has no memory left for the answer.
    const bool is_ours = no.kind == base::Kind::kOverloaded && no.drop_reason.empty();
    if (is_ours || x.reply.stop() != Stop::kNo) co_return no;
    co_await judge(x);
    note_refusal(x, no);
    const routing::Rung* rung = next_rung(x);
    let_go(x);
    if (rung == nullptr) co_return step_back(x);
    x.descent->rung = rung;
    Failed refused = co_await take_rung(x, *rung);
    if (!refused) co_return std::nullopt;
    no = *std::move(refused);
  }
}

// What engines die of goes to no other engine, whatever it is refused for: it was maybe not looked
// at yet.
Awaitable<void> RequestFlow::judge(Exchange& x) {
  if (x.suspect || parts_.suspects.empty()) co_return;
  const Failed quarantined = co_await admit_suspect(x);
  if (quarantined) x.suspect = true;
}

// The ladder is that of the deployment that was named, as it was then.
bool RequestFlow::begin_descent(Exchange& x, const base::Error& no) {
  const routing::Route& asked = x.asked ? *x.asked : x.route;
  if (asked.deployment->ladders.empty() || !may_degrade(x)) return false;
  const auto reason = x.guilty ? std::optional(admission::DegradeReason::kEngineDead)
                               : admission::degrade_reason(no, x.ask.endpoint->prompt_field);
  if (reason) x.descent = std::make_unique<Descent>(asked, *reason);
  return x.descent != nullptr;
}

// The first one counts, and one that stands where a prompt that was too long is so no more.
void RequestFlow::note_refusal(Exchange& x, const base::Error& no) {
  Descent& descent = *x.descent;
  const auto reason = admission::degrade_reason(no, x.ask.endpoint->prompt_field);
  const bool dead = x.guilty || x.suspect || reason == admission::DegradeReason::kEngineDead;
  descent.no_engine = descent.no_engine || dead;
  if (reason && descent.is_turned_by(*reason)) {
    descent.walk.turn_to(x.guilty ? admission::DegradeReason::kEngineDead : *reason);
  } else if (descent.rung != nullptr) {
    return;
  }
  descent.ending = {.error = no,
                    .deployment = x.record().deployment,
                    .adapter = x.record().adapter,
                    .replica = x.record().replica,
                    .estimated_wait = x.estimated_wait};
  if (x.attempt && x.attempt->call) descent.ending.seen = x.attempt->call->seen();
}

// Null: none helps, or the time that the request has for its first event is over.
const routing::Rung* RequestFlow::next_rung(Exchange& x) {
  const auto limit = parts_.config.first_event_deadline;
  if (limit.count() > 0 && parts_.clock.steady_now() - x.admitted >= limit) return nullptr;
  const bool no_engine = x.descent->no_engine;
  return x.descent->walk.next([&](const std::string& name) { return fits(x, name, no_engine); });
}

// Nobody is left whom it could wait for, and another deployment would take it.
bool RequestFlow::is_better_off_elsewhere(Exchange& x) {
  if (!has_ladder(x) || x.dispatcher->is_ready_besides({})) return false;
  // What it would end with: `no_replica_left`.
  const auto reason = x.last && x.failover.reached_any()
                          ? admission::degrade_reason(*x.last, x.ask.endpoint->prompt_field)
                          : admission::DegradeReason::kNoReadyReplica;
  return reason && has_rung(x, *reason);
}

bool RequestFlow::has_ladder(const Exchange& x) {
  if (x.descent) return true;
  const routing::Route& asked = x.asked ? *x.asked : x.route;
  return !asked.deployment->ladders.empty() && may_degrade(x);
}

// Whether another deployment would take it where this one does not, for this reason.
bool RequestFlow::has_rung(Exchange& x, admission::DegradeReason reason) {
  if (!has_ladder(x)) return false;
  const bool no_engine = x.suspect || x.guilty || (x.descent && x.descent->no_engine);
  const routing::Route& asked = x.descent ? x.descent->asked : (x.asked ? *x.asked : x.route);
  const auto takes_it = [&](const std::string& name) {
    if (name == x.record().deployment) return false;
    const auto found = elsewhere(x, asked, name, no_engine);
    return found && found->dispatcher->is_usable_for(found->route.adapter());
  };
  if (x.descent && !x.descent->is_turned_by(reason)) return x.descent->walk.has_next(takes_it);
  return admission::LadderWalk(*asked.deployment, reason).has_next(takes_it);
}

// Never the one that it is with.
bool RequestFlow::fits(Exchange& x, const std::string& deployment, bool no_engine) {
  const routing::Route& asked = x.descent ? x.descent->asked : (x.asked ? *x.asked : x.route);
  return deployment != x.record().deployment &&
         elsewhere(x, asked, deployment, no_engine).has_value();
}

// Gives back all that it has of the deployment that it leaves.
void RequestFlow::let_go(Exchange& x) {
  x.attempt.reset();
  x.turn.leave();
  x.has_turn = false;
  x.place.worked(0);
  x.place.cut_short();
  x.place.release();
  x.aboard.leave();
  x.last.reset();
  x.suspect = false;
  x.fingerprint.reset();
  x.waits_since.reset();
  x.failover.elsewhere();
  x.settlement.elsewhere();
  x.record().degraded = {};
  x.record().rung.clear();
  x.record().trimmed.clear();
}

Awaitable<RequestFlow::Failed> RequestFlow::take_rung(Exchange& x, const routing::Rung& rung) {
  x.entered = x.settlement.enter(base::Phase::kAdmit);
  Failed no;
  if (rung.kind == Kind::kTrim) {
    x.is_cut = true;
  } else {
    no = enter_fallback(x, rung.deployment);
  }
  if (no) co_return no;
  describe(x);
  appraise(x);
  no = admit_to_deployment(x);
  if (no) co_return no;
  if (!parts_.suspects.empty()) no = co_await admit_suspect(x);
  co_return no;
}

RequestFlow::Failed RequestFlow::enter_fallback(Exchange& x, const std::string& deployment) {
  auto found = elsewhere(x, x.descent->asked, deployment, x.descent->no_engine);
  if (!found) return gone_from_routes(deployment);
  x.descent->left.push_back(std::exchange(x.dispatcher, std::move(found->dispatcher)));
  take(x, std::move(found->route));
  x.record().replica.clear();
  x.account = std::make_shared<Account>(x.account);
  return std::nullopt;
}

// The client sees the refusal that it would have seen without a ladder, and comes back, if at all,
// when the first deployment told it to: the others need not wait for it.
base::Error RequestFlow::step_back(Exchange& x) {
  Descent::Ending& ending = x.descent->ending;
  auto left = std::exchange(x.descent->left, {});
  if (!left.empty()) {
    std::swap(left.front(), x.dispatcher);
    for (const auto& other : left) other->answered_elsewhere(x.wanted);
  }
  x.record().deployment = std::move(ending.deployment);
  x.record().adapter = std::move(ending.adapter);
  x.record().replica = std::move(ending.replica);
  x.estimated_wait = x.record().estimated_wait = ending.estimated_wait;
  note_tokens(x, ending.seen);
  return std::move(ending.error);
}

// The answer begins: whether it is quite what was asked for. Those that have told it to come back
// need not wait for it.
void RequestFlow::note_degraded(Exchange& x) {
  using admission::DegradeReason;
  if (x.descent) {
    for (const auto& left : std::exchange(x.descent->left, {})) left->answered_elsewhere(x.wanted);
  }
  const auto* rung = x.descent ? x.descent->rung : nullptr;
  RequestRecord& record = x.record();
  record.trimmed = trimmed_text(x.attempt->call->head());
  record.degraded = {};
  const bool is_fallback = rung != nullptr && rung->kind == Kind::kFallback;
  if (!is_fallback && record.trimmed.empty()) return;  // it did not have to be trimmed
  record.degraded =
      admission::name(x.descent ? x.descent->walk.reason() : DegradeReason::kContextLength);
  record.rung = is_fallback ? text_of(*rung) : "trim";
  record.asked = x.descent ? x.descent->asked.deployment->name : record.deployment;
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
