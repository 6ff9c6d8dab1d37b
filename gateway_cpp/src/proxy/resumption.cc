// How an answer that broke goes on: what its client has of it is told to another replica, which
// sends the rest. To the client that is a pause, with heartbeats.
#include "proxy/resumption.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "upstream/resume.h"

namespace penstock::proxy {

namespace {

using How = GoesOn::How;
using base::ResumeOutcome;
using std::chrono::milliseconds;
using Source = upstream::CallFailure::Source;

constexpr milliseconds kLooksAgain{100};

// What the client was told by the first replica's head no other one may tell otherwise.
bool is_same_answer(const upstream::Head& head, const upstream::Head& first) {
  return head.prompt_tokens == first.prompt_tokens && head.created == first.created &&
         head.trimmed_tokens == first.trimmed_tokens && head.content_type == first.content_type;
}

upstream::Usage more_of(const upstream::Usage& one, const upstream::Usage& other) {
  return {.prompt_tokens = std::max(one.prompt_tokens, other.prompt_tokens),
          .completion_tokens = std::max(one.completion_tokens, other.completion_tokens),
          .cached_tokens = std::max(one.cached_tokens, other.cached_tokens),
          .cost_nanousd = std::max(one.cost_nanousd, other.cost_nanousd)};
}

base::Error with(base::Error cause, const std::string& sentence) {
  cause.message += " " + sentence;
  return cause;
}

}  // namespace

// The limits of its deployment as they are now, where that is still there and wants it. All else of
// the route stays as it was when the answer began.
std::optional<routing::Limits> RequestFlow::limits_of_resume(const Exchange& x) {
  const routing::DeploymentRoute& then = *x.at.route.deployment;
  const auto& deployments = parts_.routes.read()->deployments();
  const auto now = deployments.find(then.name);
  if (now == deployments.end() || now->second->uid != then.uid) return std::nullopt;
  if (!now->second->limits.resume || then.managed) return std::nullopt;
  return now->second->limits;
}

// Whether the answer under way would go on if it broke for that reason.
GoesOn RequestFlow::would_go_on(Exchange& x, base::ResumeReason reason) {
  const Resumption* before = x.record().resumption.get();
  const bool anew = !x.has_answered();
  const uint32_t config = x.attempts.now().config();
  const bool has_body = !x.ask.body.empty() || x.large_body();
  return goes_on(
      {.reason = reason,
       .resumable = has_body && (anew || (x.delivered && x.record().events > 0 && config != 0)),
       .tokens = x.attempts.call().seen().completion_tokens,
       .crashes = x.attempts.failover().crashes(),
       .resumes = before ? before->count - before->moved : 0,
       .was_suspect = x.danger.suspect,
       .quarantined = is_quarantined(x) && !is_to_be_judged(x, reason)});
}

// The answer under way has broken, and all that came of it is written: whether it goes on.
bool RequestFlow::breaks(Exchange& x, base::ResumeReason reason, base::Error cause) {
  if (!x.may_resume() || !limits_of_resume(x)) return false;
  const GoesOn goes_on = would_go_on(x, reason);
  std::unique_ptr<Resumption>& resumption = x.record().resumption;
  if (!resumption) resumption = std::make_unique<Resumption>();
  Resumption& broken = *resumption;
  broken.goes_on = goes_on;
  broken.reason = reason;
  broken.cause = std::move(cause);
  if (!std::exchange(broken.pauses, true)) broken.since = parts_.clock.steady_now();
  broken.tokens = x.attempts.call().seen().completion_tokens;
  if (broken.count == 0 || broken.anew) broken.head = x.attempts.call().head();
  broken.anew = !x.has_answered();
  note_broken(x);
  if (broken.goes_on.how == How::kNot) note_not_resumed(x, broken.cause);
  return broken.pauses;
}

// Its canary's arm is told so, whatever becomes of it. One that leaves as it should breaks nothing.
void RequestFlow::note_broken(Exchange& x) {
  Resumption& broken = *x.record().resumption;
  if (broken.reason == base::ResumeReason::kHandOver || broken.was_broken) return;
  broken.was_broken = true;
  if (x.canary) x.canary->course.failed(broken.cause, !broken.anew);
}

// Likewise, of a call that has ended.
bool RequestFlow::goes_on_after(Exchange& x, const base::Error& fault) {
  const upstream::Call& call = x.attempts.call();
  const auto reason = call.failed() ? resume_reason(call.failure()) : std::nullopt;
  return reason && breaks(x, *reason, fault);
}

// Until the rest has begun to come; an error is what its client is told.
Awaitable<base::MaybeError> RequestFlow::resume(Exchange& x) {
  base::MaybeError over;
  const bool stuck = x.record().resumption->reason == base::ResumeReason::kHang;
  if (stuck && !x.attempts.call().ended()) co_await note_stuck(x);
  leave_broken(x);
  while (!over) {
    x.waits_from = x.settlement.enter(base::Phase::kAdmit);
    if (is_to_be_judged(x, x.record().resumption->reason)) over = co_await judge(x);
    if (!over && !x.at.has_place()) over = co_await wait_to_go_on(x);
    if (over) break;
    send(x);
    over = co_await first_of_rest(x);
    if (over) break;
    if (!x.attempts.is_under_way()) continue;  // it was left
    const upstream::Call& call = x.attempts.call();
    if (!call.failed() || call.has_bytes()) {
      note_resumed(x);
      co_return std::nullopt;
    }
    over = co_await refused_rest(x);
  }
  if (x.record().resumption->pauses) note_not_resumed(x, *over);
  co_return over;
}

// What was seen of the call is what it costs: its replica may say more yet, which nobody hears.
void RequestFlow::leave_broken(Exchange& x) {
  Resumption& broken = *x.record().resumption;
  upstream::Call& call = x.attempts.call();
  if (!call.ended()) call.pay_seen();
  // That made no event yet: another one makes them once more where there is no room for them.
  if (!call.ended() && x.delivered) x.delivered->note(call.pending_groups());
  if (broken.anew && x.delivered) x.delivered->begin_again();
  x.note_tokens(call.seen());
  note_paid(x);
  // What its engine has made besides, as it says at its end, another one makes once more.
  broken.tokens = broken.anew ? 0 : x.delivered->tokens();
  x.delivery.note_heard(parts_.timers.now());  // its pause is bounded by itself
  broken.seen = broken.anew ? upstream::Usage() : call.seen();
  broken.seen.completion_tokens = static_cast<uint32_t>(broken.tokens);
  const uint32_t config = broken.anew ? 0 : x.attempts.now().config();
  if (!broken.from.empty()) broken.from += ", ";
  broken.from += x.attempts.now().target().id;
  ++broken.count;
  if (broken.reason == base::ResumeReason::kHandOver) ++broken.moved;
  close(x, broken.cause);
  x.attempts.goes_on();
  if (x.at.has() == Has::kTurn) x.at.leave_unused();  // it was to be handed over
  x.at.wanted.runs_on = false;
  x.at.wanted.continues = config;
  x.at.wanted.delivered = static_cast<uint32_t>(broken.tokens);
  x.danger.aboard.leave();
  x.danger.suspect = broken.goes_on.how == How::kApart;
  x.record().suspect |= x.danger.suspect;
}

// What its calls so far have cost is not paid for once more.
void RequestFlow::note_paid(Exchange& x) {
  std::unique_ptr<Resumption>& resumption = x.record().resumption;
  if (!resumption) resumption = std::make_unique<Resumption>();
  resumption->paid = more_of(resumption->paid, x.attempts.call().seen());
}

// While no equal replica is ready, it waits for one for so long as its deployment says; for room at
// those that are ready as long as any request. The client may leave, and its patience may end.
Awaitable<base::MaybeError> RequestFlow::wait_to_go_on(Exchange& x) {
  runtime::TimerWheel::Timer again(parts_.timers, x.reply.signal());
  std::optional<base::SteadyTime> none_since;
  bool was_there = false;
  for (;;) {
    const auto limits = limits_of_resume(x);
    if (!limits) co_return x.record().resumption->cause;
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    seek_place(x, again.fired());
    if (x.at.has_place()) co_return std::nullopt;
    const bool is_there = is_another_ready(x);
    if (is_there && !was_there) arm_unless_none(x.queue_deadline, limits->queue_deadline);
    was_there = is_there;
    const auto now = parts_.clock.steady_now();
    none_since = is_there ? std::nullopt : std::optional(none_since.value_or(now));
    const bool in_vain =
        is_there ? x.queue_deadline.fired() : now - *none_since >= limits->resume_wait;
    if (in_vain || (x.deadline.fired() && is_silent(x))) co_return nobody_goes_on(x);
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.stop());
    again.arm(kLooksAgain);
    co_await x.reply.signal().wait();
  }
}

// Takes the place that it was given, or asks for one: where it may be what engines die of, apart
// from others of that kind, which may be done by the next look.
void RequestFlow::seek_place(Exchange& x, bool looks_again) {
  const bool apart = x.danger.suspect;
  if (x.at.has() == Has::kTurn) {
    const bool renews = looks_again && (apart || is_excluded_in_vain(x));
    if (!x.at.was_given_place() && !renews) return;
    if (x.at.take_place() && apart) keep_if_alone(x);
    if (x.at.has_place()) return;
  }
  if (x.at.wanted.continues == 0 && !is_another_ready(x)) return;
  std::vector<routing::ReplicaId> excluded = not_to_go_on_at(x);
  if (apart && !exclude_suspects(x, excluded)) return;
  const bool waits = x.at.dispatcher->again(x.at.turn(), x.at.wanted, std::move(excluded),
                                            [&x] { return x.make_waker(); });
  if (!waits) return;
  x.at.queued();
  if (x.at.was_given_place() && x.at.take_place() && apart) keep_if_alone(x);
}

// Those that have refused the rest; where others can have it, the one that said nothing of it, too:
// it may do its other work well.
std::vector<routing::ReplicaId> RequestFlow::not_to_go_on_at(const Exchange& x) {
  const auto refused = x.attempts.failover().refused();
  std::vector<routing::ReplicaId> excluded(refused.begin(), refused.end());
  const auto broken = x.attempts.failover().broken();
  const bool hung = x.settlement.record.resumption->reason == base::ResumeReason::kHang;
  if (!hung || broken.empty() || x.at.wanted.continues == 0) return excluded;
  excluded.push_back(broken.back());
  if (!x.at.dispatcher->is_ready_to_continue(x.at.wanted.continues, excluded)) excluded.pop_back();
  return excluded;
}

// What its turn excludes, where it began to wait, may be all that is left.
bool RequestFlow::is_excluded_in_vain(const Exchange& x) {
  const bool hung = x.settlement.record.resumption->reason == base::ResumeReason::kHang;
  return hung && not_to_go_on_at(x).size() == x.attempts.failover().refused().size();
}

// What speaks against the one where it broke passes.
bool RequestFlow::is_another_ready(const Exchange& x) {
  const auto refused = x.attempts.failover().refused();
  const uint32_t config = x.at.wanted.continues;
  if (config != 0) return x.at.dispatcher->is_ready_to_continue(config, refused);
  return x.at.dispatcher->is_ready_besides(refused) && x.at.dispatcher->another_is_usable({});
}

base::Error RequestFlow::nobody_goes_on(const Exchange& x) {
  const Resumption& broken = *x.settlement.record.resumption;
  const auto waited =
      std::chrono::duration_cast<milliseconds>(parts_.clock.steady_now() - broken.since);
  return with(broken.cause, "No other replica could go on with the answer within " +
                                std::to_string(waited.count()) + " ms.");
}

// Waits until something of the rest has come, or it is refused. A head alone is no answer yet, and
// one of another answer ends it.
Awaitable<base::MaybeError> RequestFlow::first_of_rest(Exchange& x) {
  const Resumption& broken = *x.record().resumption;
  const auto own = x.at.route.deployment->limits.first_event_deadline;
  arm_unless_none(x.deadline, own.count() > 0 ? own : parts_.config.first_event_deadline);
  Running running(x.reply.signal(), x.attempts.now().target().replica);
  running_.add(running);
  for (;;) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    const Attempt& attempt = x.attempts.now();
    if (!broken.anew && attempt.call().has_head() &&
        !is_same_answer(attempt.call().head(), broken.head)) {
      blame(x, routing::Failure::kBadAnswer, "it went on with another answer");
      co_return broken.cause;
    }
    if (attempt.has_event()) co_return std::nullopt;
    if (running.word == routing::Word::kStuck) {
      if (co_await leaves_stuck(x)) co_return std::nullopt;
    }
    if (x.deadline.fired()) {
      auto late = deadline_error(x);
      co_return broken.anew ? std::move(late) : nobody_goes_on(x);
    }
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
}

// The replica that was to go on with it does not: another one may. Its client, whose request was
// good, is told of what broke the answer and not of what this one minds.
Awaitable<base::MaybeError> RequestFlow::refused_rest(Exchange& x) {
  const upstream::CallFailure& failure = x.attempts.call().failure();
  const bool died = failure.source == Source::kLost || engine_died_with(failure);
  const bool may_another = may_retry(failure) || failure.error.code() == "resume_unsupported";
  const auto reason = resume_reason(failure);
  co_await note_failure(x);
  if (died && reason) {
    if (!breaks(x, *reason, failure_error(x))) co_return x.record().resumption->cause;
    leave_broken(x);
    co_return std::nullopt;
  }
  note_paid(x);
  close(x, x.record().resumption->cause);
  x.danger.aboard.leave();
  if (may_another && x.attempts.failover().is_left()) co_return std::nullopt;
  co_return x.record().resumption->cause;
}

void RequestFlow::note_resumed(Exchange& x) {
  Resumption& broken = *x.record().resumption;
  broken.pauses = false;
  ++broken.resumed;
  const auto pause = x.settlement.enter(base::Phase::kStream) - broken.since;
  x.record().attempts.back().first_us = x.settlement.entered_us();
  x.attempts.now().answers();
  arm_unless_none(x.deadline, parts_.config.silence);
  note_silence(x);
  x.delivery.note_heard(parts_.timers.now());
  keep_delivered(x);
  const auto metrics = parts_.metrics.deployment(x.record().deployment());
  metrics->resumed(broken.reason, ResumeOutcome::kResumed);
  metrics->pause.observe(pause);
  parts_.log.info("an answer goes on at another replica", {{"request_id", x.ask.request_id},
                                                           {"from", broken.from},
                                                           {"replica_id", x.record().replica},
                                                           {"reason", base::name(broken.reason)},
                                                           {"tokens", broken.tokens},
                                                           {"pause_ms", pause}});
}

void RequestFlow::note_not_resumed(Exchange& x, const base::Error& told) {
  Resumption& broken = *x.record().resumption;
  broken.pauses = false;
  const bool left = told.kind == base::Kind::kClientGone || told.kind == base::Kind::kClientSlow;
  parts_.metrics.deployment(x.record().deployment())
      ->resumed(broken.reason, left ? ResumeOutcome::kClientLeft : ResumeOutcome::kTold);
  parts_.log.warning("an answer broke and did not go on",
                     {{"request_id", x.ask.request_id},
                      {"reason", base::name(broken.reason)},
                      {"why", broken.goes_on.why_not.empty() ? std::string_view(told.code)
                                                             : broken.goes_on.why_not},
                      {"tokens", broken.tokens}});
}

}  // namespace penstock::proxy
