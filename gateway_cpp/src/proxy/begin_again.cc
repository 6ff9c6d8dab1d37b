// An answer whose replica is lost before its client has anything of it begins once more, by the
// rule of those that go on.
#include <chrono>
#include <optional>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

constexpr std::chrono::milliseconds kReadyPoll{100};

}  // namespace

// `next`: what is to be done where that rule has nothing to say.
Next RequestFlow::begins_again(Exchange& x, Next next) {
  const upstream::CallFailure& failure = x.attempts.call().failure();
  const Failover& failover = x.attempts.failover();
  const auto reason = resume_reason(failure);
  const bool died =
      failure.source == upstream::CallFailure::Source::kLost || engine_died_with(failure);
  if (!died || !reason || !failover.is_left() || !limits_of_resume(x)) return next;
  const auto resumes = static_cast<unsigned>(failover.deaths().size()) - 1;
  const GoesOn::How how =
      goes_on({.reason = *reason,
               .resumable = true,
               .crashes = failover.crashes(),
               .resumes = resumes,
               .was_suspect = x.danger.suspect,
               .quarantined = is_quarantined(x) && !is_to_be_judged(x, *reason)})
          .how;
  x.danger.spared = how == GoesOn::How::kAtOnce;
  if (how == GoesOn::How::kNot) return Next::kGiveUp;
  note_paid(x);
  if (engine_died_with(failure)) {
    Resumption& broken = *x.record().resumption;
    broken.reason = *reason;
    broken.cause = failure_error(x);
    broken.anew = true;
    note_broken(x);
  }
  if (!may_be_answered_elsewhere(x)) x.attempts.goes_on();
  return Next::kTryAnother;
}

// By another deployment, at once.
bool RequestFlow::may_be_answered_elsewhere(const Exchange& x) {
  const bool has_stable_arm = x.at.way == Way::kCanary && !x.is_at_home() && !x.danger.may_kill();
  return has_stable_arm || x.has_ladder();
}

// Where none is ready, one may be soon; what may be answered elsewhere need not wait. An error: it
// is proved that engines die of it.
Awaitable<base::MaybeError> RequestFlow::wait_to_begin_again(Exchange& x) {
  const auto limits = limits_of_resume(x);
  const auto& deaths = x.attempts.failover().deaths();
  if (!limits || deaths.empty()) co_return std::nullopt;
  x.danger.aboard.leave();
  const bool crashed = deaths.back().end == admission::EngineEnd::kCrashed;
  if (crashed && x.attempts.failover().crashes() > 1) {
    if (auto proved = co_await judge(x)) co_return proved;
  }
  if (may_be_answered_elsewhere(x)) co_return std::nullopt;
  const auto until = parts_.clock.steady_now() + limits->resume_wait;
  runtime::TimerWheel::Timer look(parts_.timers, x.reply.signal());
  while (x.stop() == Stop::kNo && parts_.clock.steady_now() < until && !is_another_ready(x)) {
    if (x.heartbeat.fired() && !beat(x)) break;
    look.arm(kReadyPoll);
    co_await x.reply.signal().wait();
  }
  co_return std::nullopt;
}

}  // namespace penstock::proxy
