// A stream's way to the client, event by event: by its coroutine, or past it.
#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

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
    const upstream::Call& call = *x_.attempt->call;
    if (!call.has_bytes() || call.ended() || x_.reply.behind() || x_.stop() != Stop::kNo ||
        !is_ordinary()) {
      return false;
    }
    return guarded([this] { return pass_on(); });
  }

  bool read(upstream::Call& call, const upstream::ChunkView& chunk) noexcept override {
    if (chunk.body.empty() || x_.delivery.tells_making || !x_.delivery.held_end.empty() ||
        !is_ordinary()) {
      return false;
    }
    // A last event waits for what came with it: the replica's last word may take it back.
    if (x_.delivery.end.may_end(chunk.body)) return false;
    return guarded([&] {
      if (!flow_.write_along(x_, chunk)) return false;
      call.wrote(chunk.body.size());
      return true;
    });
  }

 private:
  bool is_ordinary() const {
    return !x_.delivery.thrown && !x_.heartbeat.fired() && !x_.deadline.fired();
  }

  // What is thrown is its coroutine's to deal with.
  template <class Pass>
  bool guarded(const Pass& pass) noexcept {
    try {
      return pass();
    } catch (...) {
      x_.delivery.thrown = std::current_exception();
      return false;
    }
  }

  bool pass_on() {
    const Written written = flow_.write_news(x_);
    if (written.sent != Sent::kAll) {
      x_.delivery.written = written;
      return false;
    }
    flow_.note_passed_on(x_);
    return true;
  }

  RequestFlow& flow_;
  Exchange& x_;
};

// Bytes as they come, one write for all that a turn of reading brought. While the client is slow
// nothing is taken, so no credit goes back and the replica is held.
Awaitable<void> RequestFlow::stream(Exchange& x) {
  upstream::Call& call = *x.attempt->call;
  if (!x.delivery.begun) begin_stream(x, call.head().content_type);
  if (!x.delivery.told_early.empty()) tell_late(x);
  arm_unless_none(x.heartbeat, parts_.config.heartbeat);
  x.delivery.tells_making = x.wants_metadata();
  Shortcut shortcut(*this, x);
  for (;;) {
    if (x.delivery.thrown) std::rethrow_exception(x.delivery.thrown);
    if (!x.delivery.written && x.reply.behind()) {
      const Sent caught_up = co_await x.reply.flush();
      if (caught_up == Sent::kGone) {
        x.delivery.whole = false;  // what was behind may be its last event
        break;
      }
      note_written(x, 0);
    }
    if (!x.delivery.written && (call.has_bytes() || call.ended())) {
      if (call.failed()) co_await note_failure(x);
      x.delivery.written = write_news(x);
    }
    if (x.delivery.written) {
      auto [piece, sent] = *std::exchange(x.delivery.written, std::nullopt);
      if (sent == Sent::kBlocked) sent = co_await x.reply.flush();
      if (piece == Piece::kCutOff) co_return;
      if (sent == Sent::kGone) break;
      note_passed_on(x);
      if (piece == Piece::kLast) {
        x.settlement.last_byte();
        co_return note_success(x);
      }
    }
    if (x.stop() != Stop::kNo) break;
    if (x.heartbeat.fired() && !beat(x)) break;
    if (x.deadline.fired() && is_silent(x)) {
      const base::Error error = deadline_error(x);
      co_return co_await fail(x, error);
    }
    if (!call.has_bytes() && !call.ended()) {
      const upstream::Call::Reading reading(call, shortcut);
      co_await x.reply.signal().wait(shortcut);
    }
  }
  const base::Error error = stop_error(x.stop());
  co_await fail(x, error);
}

// Writes all that has come; once that is with the client's system, note_passed_on().
Written RequestFlow::write_news(Exchange& x) {
  const Piece piece = take_news(x);
  return {.piece = piece, .sent = x.reply.write(x.delivery.payload, piece)};
}

// The same with a chunk that no others wait before; false: nothing was written, and the chunk is to
// be kept.
bool RequestFlow::write_along(Exchange& x, const upstream::ChunkView& chunk) {
  if (!x.reply.write_along(chunk.body)) return false;
  if (x.shadow) x.shadow->answer.keep(chunk.body);
  x.record().events += chunk.events;
  x.delivery.taken = chunk.body.size();
  x.delivery.end.note(chunk.body);
  x.delivery.closed = false;
  x.settlement.first_byte();
  note_with_client(x);
  return true;
}

void RequestFlow::note_passed_on(Exchange& x) {
  note_with_client(x);
  x.attempt->call->wrote(x.delivery.taken);
}

void RequestFlow::note_with_client(Exchange& x) {
  x.delivery.whole = x.delivery.whole || (x.delivery.end.reached() && x.delivery.held_end.empty());
  note_silence(x);
  note_written(x, x.delivery.taken);
}

// Moves what came for the call into the payload, with an error event where that is its end.
Piece RequestFlow::take_news(Exchange& x) {
  upstream::Call& call = *x.attempt->call;
  x.record().events += call.pending_events();
  call.take(x.delivery.payload);
  x.delivery.taken = x.delivery.payload.size();
  if (x.shadow) x.shadow->answer.keep(x.delivery.payload.bytes());
  if (!x.delivery.held_end.empty())
    x.delivery.payload.append(std::exchange(x.delivery.held_end, {}));
  x.delivery.end.note(x.delivery.payload.bytes());
  if (x.delivery.tells_making && !x.delivery.names) {
    x.delivery.names =
        std::make_unique<openai::ChunkNames>(openai::chunk_names(x.delivery.payload.bytes()));
  }
  if (x.delivery.names && x.delivery.end.reached() && !call.ended()) hold_end(x);
  const Piece piece = call.ended() ? last_piece(x) : Piece::kMore;
  x.delivery.closed = piece != Piece::kMore;
  if (x.delivery.taken > 0 && piece != Piece::kCutOff) x.settlement.first_byte();
  return piece;
}

// Nothing follows the last event of a whole answer: where it came before a failure, the client has
// all of it. An engine that says its last event and then that the answer is none is believed, as
// long as the client has not seen it.
Piece RequestFlow::last_piece(Exchange& x) {
  x.aboard.leave();
  if (x.delivery.whole || (x.attempt->call->failed() && x.delivery.end.reached()))
    return Piece::kLast;
  Failed fault = fault_of_end(x);
  if (!fault && !x.delivery.end.reached()) fault = unended();
  if (!fault) {
    if (x.delivery.names) add_metadata(x);
    return Piece::kLast;
  }
  x.delivery.payload.drop_last(x.delivery.end.bytes());
  x.delivery.payload.append(broken(x, *fault));
  note_tokens(x, x.attempt->call->seen());
  x.settlement.failed(*fault);
  return Piece::kCutOff;
}

// The last event waits for what the replica's last word says of the answer.
void RequestFlow::hold_end(Exchange& x) {
  x.delivery.held_end =
      x.delivery.payload.bytes().substr(x.delivery.payload.size() - x.delivery.end.bytes());
  x.delivery.payload.drop_last(x.delivery.held_end.size());
}

// Before the last event, which this piece ends with.
void RequestFlow::add_metadata(Exchange& x) {
  const std::string last(
      x.delivery.payload.bytes().substr(x.delivery.payload.size() - x.delivery.end.bytes()));
  const RequestRecord& record = x.record();
  const upstream::Head& head = x.attempt->call->head();
  const upstream::Usage usage = x.attempt->call->outcome().usage.value_or(upstream::Usage());
  const std::string version = backend_version(x);
  x.delivery.payload.drop_last(last.size());
  x.delivery.payload.append(
      metadata_event(*x.delivery.names, {.trace_id = record.trace_id,
                                         .backend = record.deployment,
                                         .replica = record.replica,
                                         .backend_version = version,
                                         .model_version = head.model_version,
                                         .adapter_version = record.adapter,
                                         .degraded = record.degraded,
                                         .trimmed_messages = head.trimmed_messages,
                                         .trimmed_tokens = head.trimmed_tokens,
                                         .queue = x.queue_wait,
                                         .estimated_wait = x.estimated_wait,
                                         .ttft = record.ttft.value_or(x.settlement.age()),
                                         .total = x.settlement.age(),
                                         .prompt_tokens = usage.prompt_tokens,
                                         .completion_tokens = usage.completion_tokens,
                                         .cached_tokens = usage.cached_tokens,
                                         .attempts = record.attempts}));
  x.delivery.payload.append(last);
}

// How long the client of a stream had nothing to read, by the timers' clock.
void RequestFlow::note_silence(Exchange& x) {
  const auto since = parts_.timers.now() - x.delivery.last_heard;
  x.record().silence = std::max<std::chrono::nanoseconds>(x.record().silence, since);
}

}  // namespace penstock::proxy
