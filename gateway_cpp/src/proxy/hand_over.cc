// From a replica that is stuck or leaves an answer goes on elsewhere as soon as another has room
// for it; until then it runs on where it is.
#include <string>
#include <utility>
#include <vector>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

base::ResumeReason reason_of(routing::Word word) {
  return word == routing::Word::kStuck ? base::ResumeReason::kHang : base::ResumeReason::kHandOver;
}

base::Error why_it_moves(routing::Word word) {
  return base::make_error(base::Kind::kUpstreamFailed,
                          word == routing::Word::kStuck
                              ? "The replica stopped working on this answer before its end."
                              : "The replica goes away, and the answer was to go on elsewhere.");
}

}  // namespace

// True: it has a place elsewhere, and goes there. What has come is written by then.
bool RequestFlow::moves(Exchange& x, routing::Word word) {
  if (word == routing::Word::kNone) {
    if (x.at.has() == Has::kTurn) x.at.leave_unused();  // it works again
    return false;
  }
  if (x.attempts.call().has_bytes() || x.attempts.call().ended()) return false;
  const bool runs_on = word == routing::Word::kHandOver;
  if (x.at.has() == Has::kTurn && x.at.wanted.runs_on != runs_on) x.at.leave_unused();
  if (x.at.has() == Has::kNothing && !asks_to_move(x, word)) return false;
  if (!x.at.was_given_place() || !x.at.take_place()) return false;
  if (may_move(x, word) && breaks(x, reason_of(word), why_it_moves(word))) return true;
  x.at.leave_unused();
  return false;
}

// One that engines may die of stays: where it would go others of its kind may be.
bool RequestFlow::may_move(Exchange& x, routing::Word word) {
  return x.record().events > 0 && limits_of_resume(x) &&
         would_go_on(x, reason_of(word)).how == GoesOn::How::kAtOnce;
}

bool RequestFlow::asks_to_move(Exchange& x, routing::Word word) {
  if (!may_move(x, word)) return false;
  x.at.wanted.continues = x.attempts.now().config();
  x.at.wanted.delivered = x.attempts.call().seen().completion_tokens;
  x.at.wanted.runs_on = word == routing::Word::kHandOver;
  x.at.dispatcher->again(x.at.turn(), x.at.wanted, {{x.attempts.now().target().id}},
                         [&x] { return x.make_waker(); });
  x.at.queued();
  return true;
}

// While its client takes nothing, it waits for no place that others can use.
Awaitable<Sent> RequestFlow::catch_up(Exchange& x) {
  if (x.at.has() == Has::kTurn) x.at.leave_unused();
  return x.reply.flush();
}

// Its client has nothing of an answer yet, and another replica may begin one: true, the attempt is
// over. Where there is no other it may still get on.
Awaitable<bool> RequestFlow::leaves_stuck(Exchange& x) {
  const bool may_leave = x.attempts.failover().is_left() && limits_of_resume(x) &&
                         is_another_ready(x) &&
                         x.at.dispatcher->another_is_usable({x.attempts.now().target().id});
  if (!may_leave) co_return false;
  co_await note_stuck(x);
  x.danger.spared = !x.danger.suspect;
  x.danger.aboard.leave();
  x.attempts.call().pay_seen();
  note_paid(x);
  close(x, why_it_moves(routing::Word::kStuck));
  co_return true;
}

// As a replica that was lost: a request under which two of them went may be why.
Awaitable<void> RequestFlow::note_stuck(Exchange& x) {
  x.attempts.after({.source = upstream::CallFailure::Source::kLost, .error = {}}, true);
  if (!x.attempts.failover().is_deadly()) co_return;
  x.danger.guilty = true;
  co_await know_fingerprint(x);
  if (x.danger.fingerprint) suspect(x);
}

}  // namespace penstock::proxy
