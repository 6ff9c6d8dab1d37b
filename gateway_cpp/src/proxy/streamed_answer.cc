// A stream's way to the client, event by event: by its coroutine, or past it.
#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "proxy/answer_head.h"
#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "runtime/signal.h"

namespace penstock::proxy {

namespace {

// Of a replica that says it is done before its stream is.
base::Error unended() {
  return base::make_error(base::Kind::kUpstreamFailed,
                          "The replica ended the stream before its last event: the answer is not "
                          "complete. Send the request again.");
}

}  // namespace

// What comes while the stream's coroutine waits goes on to the client without it, as long as there
// is no more to it than that: from where it was read, or all that came since the last.
class RequestFlow::Shortcut final : public runtime::Signal::Reader, public upstream::ChunkReader {
 public:
  Shortcut(RequestFlow& flow, Exchange& x) : flow_(flow), x_(x) {}

  bool read() noexcept override {
    const upstream::Call& call = x_.attempts.call();
    if (!call.has_bytes() || call.ended() || x_.reply.behind() || x_.stop() != Stop::kNo ||
        !is_ordinary()) {
      return false;
    }
    return guarded([this] { return pass_on(); });
  }

  bool read(upstream::Call& call, const upstream::ChunkView& chunk) noexcept override {
    if (chunk.body.empty() || !is_ordinary() || !x_.delivery.may_pass_on(chunk.body)) return false;
    return guarded([&] {
      if (!flow_.write_along(x_, chunk)) return false;
      call.wrote(chunk.body.size());
      return true;
    });
  }

  // What was written and did not go out at once; nothing: there is nothing of that.
  std::optional<Written> take_written() {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::exchange(written_, std::nullopt);
  }

 private:
  bool is_ordinary() const { return !thrown_ && !x_.heartbeat.fired() && !x_.deadline.fired(); }

  // What is thrown is its coroutine's to deal with.
  template <class Pass>
  bool guarded(const Pass& pass) noexcept {
    try {
      return pass();
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }

  bool pass_on() {
    const Written written = flow_.write_news(x_);
    if (written.sent != Sent::kAll) {
      written_ = written;
      return false;
    }
    flow_.note_passed_on(x_);
    return true;
  }

  RequestFlow& flow_;
  Exchange& x_;
  std::exception_ptr thrown_;
  std::optional<Written> written_;
};

// One that ends as it begins is seen through before its client sees any of it, where another may
// answer instead.
Awaitable<RequestFlow::Delivered> RequestFlow::streamed_answer(Exchange& x) {
  if (x.at.way == Way::kCanary && x.attempts.call().ended()) {
    base::MaybeError fault = fault_of_end(x);
    if (!fault && !x.attempts.call().has_bytes()) fault = unended();
    if (fault) {
      fail_attempt(x, *std::move(fault));
      co_return Delivered::kBroken;
    }
  }
  keep_delivered(x);
  // Nobody here needs it any more, but a dead engine's request is known by it.
  if (x.large) co_await hash_aside(x);
  while (co_await stream(x) == Streamed::kBroken) {
    if (const auto over = co_await resume(x)) {
      co_await fail(x, *over);
      break;
    }
  }
  co_return Delivered::kYes;
}

// What its client has is noted from here on where another replica could go on with it.
void RequestFlow::keep_delivered(Exchange& x) {
  if (!x.may_resume() || !x.attempts.call().head().resumable) return x.delivered.reset();
  if (!x.delivered) x.delivered = std::make_unique<DeliveredTokens>(parts_.resume_bytes);
  if (x.large && !x.delivered->keep(x.large->text)) x.forget_delivered();
}

// Bytes as they come, one write for all that a turn of reading brought. While the client is slow
// nothing is taken, so no credit goes back and the replica is held.
Awaitable<RequestFlow::Streamed> RequestFlow::stream(Exchange& x) {
  upstream::Call& call = x.attempts.call();
  if (!x.delivery.is_stream()) begin_stream(x, call.head().content_type);
  if (x.delivery.was_told_early()) tell_late(x);
  arm_unless_none(x.heartbeat, parts_.config.heartbeat);
  if (x.wants_metadata()) x.delivery.tell_making();
  Shortcut shortcut(*this, x);
  Running running(x.reply.signal(), x.attempts.now().target().replica);
  if (x.delivered) running_.add(running);
  for (;;) {
    std::optional<Written> written = shortcut.take_written();
    if (!written && x.reply.behind()) {
      const Sent caught_up = co_await catch_up(x);
      if (caught_up == Sent::kGone) {
        x.delivery.lost();
        break;
      }
      note_written(x, 0);
    }
    if (!written && (call.has_bytes() || call.ended())) {
      if (call.failed()) co_await note_failure(x);
      written = write_news(x);
    }
    if (written) {
      if (written->sent == Sent::kBlocked) written->sent = co_await catch_up(x);
      if (written->piece == Piece::kCutOff) co_return Streamed::kOver;
      if (written->sent == Sent::kGone) break;
      note_passed_on(x);
      if (written->piece == Piece::kLast) {
        x.settlement.last_byte();
        note_success(x);
        co_return Streamed::kOver;
      }
      if (x.pauses()) co_return Streamed::kBroken;
    }
    if (x.stop() != Stop::kNo) break;
    if (x.heartbeat.fired() && !beat(x)) break;
    if (x.delivered && moves(x, running.word)) co_return Streamed::kBroken;
    if (!x.delivered && x.at.has() == Has::kTurn) x.at.leave_unused();
    if (x.deadline.fired() && is_silent(x)) {
      const base::Error error = deadline_error(x);
      if (!call.has_bytes() && breaks(x, base::ResumeReason::kHang, error)) {
        co_return Streamed::kBroken;
      }
      co_await fail(x, error);
      co_return Streamed::kOver;
    }
    if (!call.has_bytes() && !call.ended()) {
      const upstream::Call::Reading reading(call, shortcut);
      co_await x.reply.signal().wait(shortcut);
    }
  }
  const base::Error error = stop_error(x.stop());
  if (x.pauses()) note_not_resumed(x, error);
  co_await fail(x, error);
  co_return Streamed::kOver;
}

// Writes all that has come; once that is with the client's system, note_passed_on().
RequestFlow::Written RequestFlow::write_news(Exchange& x) {
  const Piece piece = take_news(x);
  return {.piece = piece, .sent = x.reply.write(x.delivery.payload(), piece)};
}

// The same with a chunk that no others wait before; false: nothing was written, and the chunk is to
// be kept.
bool RequestFlow::write_along(Exchange& x, const upstream::ChunkView& chunk) {
  if (!x.reply.write_along(chunk.body)) return false;
  if (x.shadow) x.shadow->answer.keep(chunk.body);
  x.record().events += chunk.events;
  x.note_delivered(chunk.groups);
  x.delivery.passed_on(chunk.body);
  x.settlement.first_byte();
  note_with_client(x);
  return true;
}

void RequestFlow::note_passed_on(Exchange& x) {
  note_with_client(x);
  x.attempts.call().wrote(x.delivery.taken());
}

void RequestFlow::note_with_client(Exchange& x) {
  x.delivery.arrived();
  note_silence(x);
  note_written(x, x.delivery.taken());
}

// Moves what came for the call into the payload, with an error event where that is its end.
Piece RequestFlow::take_news(Exchange& x) {
  upstream::Call& call = x.attempts.call();
  x.record().events += call.pending_events();
  x.note_delivered(call.pending_groups());
  call.take(x.delivery.payload());
  if (x.shadow) x.shadow->answer.keep(x.delivery.payload().bytes());
  x.delivery.took(call.ended() ? Delivery::More::kNone : Delivery::More::kComes);
  const Piece piece = call.ended() ? last_piece(x) : Piece::kMore;
  if (piece != Piece::kMore) x.delivery.end_stream();
  if (x.delivery.taken() > 0 && piece != Piece::kCutOff) x.settlement.first_byte();
  return piece;
}

// Nothing follows the last event of a whole answer: where it came before a failure, the client has
// all of it. An engine that says its last event and then that the answer is none is believed, as
// long as the client has not seen it.
Piece RequestFlow::last_piece(Exchange& x) {
  x.danger.aboard.leave();
  const bool reached = x.delivery.reached_end();
  const upstream::Call& call = x.attempts.call();
  const bool came_before = call.failed() && reached && !call.failure().repeated;
  if (x.delivery.has_all() || came_before) return Piece::kLast;
  base::MaybeError fault = fault_of_end(x);
  if (!fault && !reached) fault = unended();
  if (!fault) {
    if (x.delivery.names() != nullptr) x.delivery.put_before_end(making_of(x));
    return Piece::kLast;
  }
  if (goes_on_after(x, *fault)) return Piece::kMore;
  x.delivery.break_off(broken(x, *fault));
  x.note_tokens(x.attempts.call().seen());
  x.failed(*fault);
  return Piece::kCutOff;
}

// How long the client of a stream had nothing to read, by the timers' clock.
void RequestFlow::note_silence(Exchange& x) {
  const auto silence = x.delivery.since_heard(parts_.timers.now());
  if (silence > kGap) x.record().note_gap(silence, x.settlement.age_us());
  x.record().silence = std::max(x.record().silence, silence);
}

}  // namespace penstock::proxy
