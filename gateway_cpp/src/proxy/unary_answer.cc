// A unary answer's way to the client: collected whole, in a budget, then sent piece by piece.
#include <chrono>

#include "base/json_text.h"
#include "proxy/answer_head.h"
#include "proxy/exchange.h"
#include "proxy/held_answer.h"
#include "proxy/request_flow.h"
#include "runtime/room_wait.h"

namespace penstock::proxy {

namespace {

constexpr std::chrono::milliseconds kHoldAndWait{2'000};

base::Error no_room_for_answer() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway holds as many bytes of answers, for clients that "
                                "read them slowly, as it may. Try again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace

// Nothing of it goes to the client before it is whole: until then another replica may be tried, as
// before its first byte.
Awaitable<RequestFlow::Delivered> RequestFlow::unary(Exchange& x) {
  HeldAnswer answer(parts_.answers);
  base::MaybeError fault;
  // Short ones have come as a whole.
  if (!x.attempts.call().finished() || !take_all(x, answer)) fault = co_await collect(x, answer);
  if (!x.attempts.is_under_way()) co_return Delivered::kNothing;
  // What is not sent shall not hold its share while an error is written to a slow reader.
  if (fault || x.attempts.call().failed()) answer.clear();
  auto next = Next::kGiveUp;
  if (!fault) {
    if (x.attempts.call().failed()) next = begins_again(x, co_await note_failure(x));
    fault = fault_of_end(x);
  }
  if (next == Next::kTryAnother) {
    close(x, *std::move(fault));
    const auto proved = co_await wait_to_begin_again(x);
    co_return proved ? Delivered::kBroken : Delivered::kNothing;
  }
  if (fault) {
    fail_attempt(x, *std::move(fault));
    co_return Delivered::kBroken;
  }
  const AnswerHead head = begin_whole(x);
  const size_t bytes = answer.size();
  Sent sent = Sent::kAll;
  if (!answer.is_short()) {
    sent = co_await x.reply.answer(head, answer);
  } else if ((sent = x.reply.answer_short(head, answer.front())) == Sent::kBlocked) {
    sent = co_await x.reply.flush();
  }
  if (sent == Sent::kGone) {
    const base::Error gone = stop_error(x.stop());
    co_await fail(x, gone);
    co_return Delivered::kYes;
  }
  x.record().events = 1;
  note_written(x, bytes);
  note_success(x);
  co_return Delivered::kYes;
}

// Adds what has come to the answer; false: there is no room for it yet.
bool RequestFlow::take_all(Exchange& x, HeldAnswer& answer) {
  if (x.attempts.call().has_bytes()) {
    x.attempts.call().take(x.delivery.payload());
    if (x.shadow) x.shadow->answer.keep(x.delivery.payload().bytes());
    answer.add(x.delivery.payload());
  }
  return answer.find_room();
}

// Everything that comes up to the call's end; an error: the answer ends with it before that.
Awaitable<base::MaybeError> RequestFlow::collect(Exchange& x, HeldAnswer& answer) {
  upstream::Call& call = x.attempts.call();
  Running running(x.reply.signal(), x.attempts.now().target().replica);
  running_.add(running);
  while (!call.failed()) {
    const uint64_t before = answer.size();
    const bool has_room = take_all(x, answer);
    const uint64_t taken = answer.size() - before;
    if (taken > 0 || !has_room) {
      base::MaybeError no;
      if (!has_room) no = co_await make_room(x, answer);
      if (no) co_return no;
      call.wrote(taken);
      x.delivery.note_heard(parts_.timers.now());
      continue;
    }
    if (call.ended()) break;
    if (running.word == routing::Word::kStuck) {
      if (co_await leaves_stuck(x)) break;
    }
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    if (x.deadline.fired() && is_silent(x)) co_return deadline_error(x);
    co_await x.reply.signal().wait();
  }
  co_return std::nullopt;
}

// Waits for others' answers to go. Meanwhile the replica gets no credit, and is held. Nothing to
// wait for is left when the call has failed: collect() sees that.
Awaitable<base::MaybeError> RequestFlow::make_room(Exchange& x, HeldAnswer& answer) {
  runtime::RoomWait room(parts_.io, x.reply.signal());
  // Who holds a part of what all wait for gives it back soon, or nobody would get on.
  runtime::TimerWheel::Timer patience(parts_.timers, x.reply.signal());
  patience.arm(answer.holds_share() ? kHoldAndWait : parts_.config.body_timeout);
  while (!answer.find_room()) {
    if (x.attempts.call().failed()) co_return std::nullopt;
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    if (patience.fired()) co_return no_room_for_answer();
    if (!room.must_try_again(answer.share())) co_await x.reply.signal().wait();
  }
  co_return std::nullopt;
}

AnswerHead RequestFlow::begin_whole(Exchange& x) {
  x.large.reset();
  const upstream::Head& told = x.attempts.call().head();
  x.record().status = told.status != 0 ? told.status : 200;
  x.settlement.first_byte();
  x.delivery.answer();
  const std::string_view type = told.content_type;
  return head_of(x, x.record().status, type.empty() ? base::kJsonType : type);
}

}  // namespace penstock::proxy
