// The answer's way to the client: what streamed and unary ones have in common, and every other way
// for a request to end.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/json_text.h"
#include "dialects/errors.h"
#include "openai/errors.h"
#include "proxy/answer_head.h"
#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kEventStream = "text/event-stream";
constexpr std::string_view kPing = ": ping\n\n";

// What is too long for a record is as long as it can.
uint32_t bounded_us(uint64_t time) {
  return static_cast<uint32_t>(std::min<uint64_t>(time, std::numeric_limits<uint32_t>::max()));
}

bool is_event_stream(std::string_view content_type) {
  return content_type.substr(0, kEventStream.size()) == kEventStream;
}

// What is ours is said again where it has changed: another replica answers than was asked first.
bool was_told(const std::vector<openai::Header>& told, const openai::Header& header) {
  const auto found = std::ranges::find(told, header.name, &openai::Header::name);
  return found != told.end() &&
         (found->value == header.value || !header.name.starts_with("x-penstock-"));
}

}  // namespace

Awaitable<RequestFlow::Delivered> RequestFlow::deliver(Exchange& x) {
  x.settlement.enter(base::Phase::kStream);
  x.attempts.now().answers();
  const upstream::Head& head = x.attempts.call().head();
  x.record().model_version = head.model_version;
  note_degraded(x);
  arm_unless_none(x.deadline, parts_.config.silence);
  x.delivery.note_heard(parts_.timers.now());
  const bool streamed = x.delivery.is_stream() || is_event_stream(head.content_type);
  return streamed ? streamed_answer(x) : unary(x);
}

// What the client of a stream that is not whole is told.
std::string RequestFlow::broken(const Exchange& x, const base::Error& error) const {
  using std::chrono::duration_cast;
  const auto now = parts_.clock.wall_now().time_since_epoch();
  return x.delivery.broken(error, {.request_id = x.ask.request_id,
                                   .model = x.request.model,
                                   .now = duration_cast<std::chrono::seconds>(now).count()});
}

void RequestFlow::note_written(Exchange& x, uint64_t bytes) {
  x.record().bytes += bytes;
  parts_.metrics.bytes_sent.add(bytes);
  x.delivery.note_written(parts_.timers.now());
  x.delivery.note_heard(parts_.timers.now());
}

void RequestFlow::note_success(Exchange& x) {
  RequestRecord& record = x.record();
  record.outcome = base::Outcome::kSucceeded;
  x.attempts.now().answered();
  x.note_tokens(x.attempts.call().seen());
  if (!x.attempts.call().finished()) return;
  const upstream::Finished& outcome = x.attempts.call().outcome();
  const upstream::Usage usage = outcome.usage.value_or(upstream::Usage());
  AttemptRecord& attempt = record.attempts.back();
  attempt.queued_us = bounded_us(outcome.queue_us);
  attempt.prefill_us = bounded_us(outcome.prefill_us);
  attempt.decode_us = bounded_us(outcome.decode_us);
  attempt.cached_tokens = usage.cached_tokens;
  if (outcome.prefill_us > 0 && x.resumes() == 0) {
    record.engine_ttft = std::chrono::microseconds(outcome.queue_us + outcome.prefill_us);
  }
  const dispatch::Cost cost{
      .body_bytes = x.body_bytes,
      .prompt_tokens = usage.prompt_tokens + x.attempts.call().head().trimmed_tokens,
      .completion_tokens = usage.completion_tokens};
  x.at.dispatcher->note_answer(*x.attempts.now().target().replica, cost, x.at.wanted.estimate);
  clear(x);
}

// Whatever engines died with the request aboard was not its doing. One that is hashed at the side
// may not be known yet: another answer will tell.
void RequestFlow::clear(Exchange& x) {
  if (parts_.suspects.empty() || x.at.route.deployment->managed) return;
  x.danger.guilty = false;
  if (!x.danger.fingerprint && x.job && x.job->done()) x.danger.fingerprint = x.job->fingerprint;
  if (!x.danger.fingerprint && !x.large && !x.job) {
    x.danger.fingerprint =
        admission::fingerprint_of(x.at.route.deployment->uid, x.ask.endpoint->path, x.ask.body);
  }
  if (x.danger.fingerprint)
    parts_.suspects.answered(*x.danger.fingerprint, parts_.clock.wall_now());
}

// What its replica says that it cost comes later, and is counted then: here it is reckoned.
void RequestFlow::note_cut_off(Exchange& x) {
  const upstream::Call& call = x.attempts.call();
  x.note_tokens(call.seen());
  const upstream::Usage due = call.unpaid();
  const routing::Prices& prices = x.at.route.deployment->prices;
  x.record().cost_nanousd =
      x.at.account->cost_nanousd() +
      prices.nanousd(due.prompt_tokens, due.cached_tokens, due.completion_tokens);
}

// The client's answer is an error: as a status if it has seen none yet, else in the stream.
Awaitable<void> RequestFlow::fail(Exchange& x, const base::Error& error) {
  if (x.attempts.is_under_way()) note_cut_off(x);
  if (x.delivery.has_all()) x.record().end_attempt({}, x.settlement.age_us());
  note_attempt_over(x, error);
  x.attempts.drop();
  x.at.leave_queue();
  x.danger.aboard.leave();
  if (x.delivery.has_all()) {
    x.record().outcome = base::Outcome::kSucceeded;
  } else {
    x.failed(error);
  }
  if (!x.delivery.is_stream()) {  // nobody has seen an answer of another
    x.record().forget_degraded();
  }
  if (error.kind == base::Kind::kClientGone || x.delivery.is_closed()) co_return;
  if (x.delivery.is_stream()) {
    const Piece end = x.delivery.has_all() ? Piece::kLast : Piece::kCutOff;
    x.delivery.end_stream();
    if (end == Piece::kCutOff) x.delivery.payload().append(broken(x, error));
    if (x.reply.write(x.delivery.payload(), end) == Sent::kBlocked) co_await x.reply.flush();
    co_return;
  }
  x.delivery.answer();
  x.record().status = error.status;
  auto head = head_of(x, error.status, base::kJsonType);
  for (auto& header : openai::error_headers(error)) head.headers.push_back(std::move(header));
  const std::string body = dialects::error_body(x.ask.endpoint->dialect, error, x.ask.request_id);
  co_await x.reply.answer(head, body);
}

void RequestFlow::introduce(AnswerHead& head, const Unread& request, const base::Error& why) {
  const base::TraceContext trace = traces_.accept(request.traceparent);
  const base::TraceParent parent(trace, trace.span);
  const auto age = parts_.clock.steady_now() - request.received;
  add_beginning(head, age, parent.trace_id());
  if (why.kind != base::Kind::kInvalidApiKey || parts_.settling.sink == nullptr) return;
  std::unique_ptr<RequestRecord> record = parts_.settling.records.take();
  record->request_id = request.request_id;
  record->client_request_id = request.client_request_id;
  record->trace_id = parent.trace_id();
  record->path = request.endpoint->path;
  record->operation = request.endpoint->operation;
  record->client = request.client;
  record->status = why.status;
  record->outcome = outcome_of(why);
  record->error_code = why.code;
  record->message = why.message;
  record->duration = age;
  record->received_us = us_since_epoch(parts_.clock.wall_now() - age);
  hand_on(*record, *parts_.settling.sink);
  parts_.settling.records.give(std::move(record));
}

void RequestFlow::begin_stream(Exchange& x, std::string_view content_type) {
  const unsigned told = x.attempts.is_under_way() ? x.attempts.call().head().status : 0;
  const unsigned status = told != 0 ? told : 200;
  AnswerHead head = head_of(x, status, content_type);
  head.headers.push_back({"cache-control", "no-cache"});
  head.headers.push_back({"x-accel-buffering", "no"});
  x.reply.begin_stream(head);
  x.delivery.begin_stream();
  x.record().status = status;
}

// What the head of a stream that was opened early could not say comes as comments.
void RequestFlow::tell_late(Exchange& x) {
  const auto told = x.delivery.take_told_early();
  runtime::Payload comments;
  for (const auto& header : head_of(x, 200, kEventStream).headers) {
    if (was_told(told, header)) continue;
    comments.append(": ");
    comments.append(header.name);
    comments.append(": ");
    comments.append(header.value);
    comments.append("\n");
  }
  if (comments.empty()) return;
  comments.append("\n");
  parts_.metrics.bytes_sent.add(comments.size());
  x.reply.write(comments, Piece::kMore);
}

// After enough silence an SSE comment, which opens the stream if need be: every check that can
// still give a status has passed. False: the client is gone.
bool RequestFlow::beat(Exchange& x) {
  const auto silence =
      std::chrono::duration_cast<milliseconds>(x.delivery.since_written(parts_.timers.now()));
  if (silence < parts_.config.heartbeat) {
    x.heartbeat.arm(parts_.config.heartbeat - silence);
    return true;
  }
  x.heartbeat.arm(parts_.config.heartbeat);
  x.delivery.note_written(parts_.timers.now());
  if (!x.delivery.is_stream()) {
    x.delivery.tell_early(head_of(x, 200, kEventStream).headers);
    begin_stream(x, kEventStream);
  }
  runtime::Payload ping;
  ping.append(kPing);
  parts_.metrics.heartbeats.add();
  parts_.metrics.bytes_sent.add(kPing.size());
  return x.reply.write(ping, Piece::kMore) != Sent::kGone;
}

// Whether the replica has said nothing for as long as it may; the timer goes on if it has.
bool RequestFlow::is_silent(Exchange& x) {
  const auto silence =
      std::chrono::duration_cast<milliseconds>(x.delivery.since_heard(parts_.timers.now()));
  if (silence >= parts_.config.silence) return true;
  x.deadline.arm(parts_.config.silence - silence);
  return false;
}

}  // namespace penstock::proxy
