// The answer's way to the client: what streamed and unary ones have in common, and every other way
// for a request to end.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/printable.h"
#include "dialects/errors.h"
#include "openai/errors.h"
#include "proxy/exchange.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kEventStream = "text/event-stream";
constexpr std::string_view kPing = ": ping\n\n";

bool is_event_stream(std::string_view content_type) {
  return content_type.substr(0, kEventStream.size()) == kEventStream;
}

// The version of OpenAI's API that answers follow; some clients ask for the header.
constexpr std::string_view kOpenAiVersion = "2020-10-01";

std::string milliseconds_text(std::chrono::nanoseconds duration) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(duration).count());
}

void add_beginning(AnswerHead& head, std::chrono::nanoseconds age, std::string_view trace_id) {
  head.headers.push_back({"openai-processing-ms", milliseconds_text(age)});
  head.headers.push_back({"openai-version", std::string(kOpenAiVersion)});
  head.headers.push_back({"x-penstock-trace-id", std::string(trace_id)});
}

void add_if_told(AnswerHead& head, std::string_view name, std::string value) {
  if (value.empty() || !base::is_printable_ascii(value)) return;
  head.headers.push_back({name, std::move(value)});
}

void add_rate(AnswerHead& head, const std::optional<admission::RateWindow>& window,
              const std::array<std::string_view, 3>& names) {
  if (!window) return;
  head.headers.push_back({names[0], std::to_string(window->limit)});
  head.headers.push_back({names[1], std::to_string(window->remaining)});
  head.headers.push_back({names[2], admission::reset_text(window->reset)});
}

// How the tenant's limits stand, where it has any.
void add_rates(AnswerHead& head, const admission::RateState& rates) {
  add_rate(head, rates.requests,
           {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests"});
  add_rate(
      head, rates.tokens,
      {"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"});
}

// Who answered, and what it had not to compute. A head that counted no prompt says nothing of that.
void add_facts(AnswerHead& head, std::string backend_version, const upstream::Head& told) {
  add_if_told(head, "x-penstock-backend-version", std::move(backend_version));
  add_if_told(head, "x-penstock-model-version", told.model_version);
  if (told.prompt_tokens == 0) return;
  head.headers.push_back({"x-penstock-prefix-hit", std::to_string(told.cached_tokens)});
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
  const upstream::Head& head = x.attempt->call->head();
  x.record().model_version = head.model_version;
  note_degraded(x);
  arm_unless_none(x.deadline, parts_.config.silence);
  x.delivery.last_heard = parts_.timers.now();
  const bool streamed = x.delivery.begun || is_event_stream(head.content_type);
  return streamed ? streamed_answer(x) : unary(x);
}

Awaitable<RequestFlow::Delivered> RequestFlow::streamed_answer(Exchange& x) {
  // No other replica will need it, but a dead engine's request is known by it.
  if (x.large) co_await hash_aside(x);
  co_await stream(x);
  co_return Delivered::kYes;
}

// What the client of a stream that is not whole is told.
std::string RequestFlow::broken(const Exchange& x, const base::Error& error) const {
  using std::chrono::duration_cast;
  const auto now = parts_.clock.wall_now().time_since_epoch();
  return x.delivery.end.broken(error, {.request_id = x.ask.request_id,
                                       .model = x.request.model,
                                       .now = duration_cast<std::chrono::seconds>(now).count()});
}

void RequestFlow::note_written(Exchange& x, uint64_t bytes) {
  x.record().bytes += bytes;
  parts_.metrics.bytes_sent.add(bytes);
  x.delivery.last_write = x.delivery.last_heard = parts_.timers.now();
}

void RequestFlow::note_success(Exchange& x) {
  RequestRecord& record = x.record();
  record.outcome = base::Outcome::kSucceeded;
  note_tokens(x, x.attempt->call->seen());
  if (!x.attempt->call->finished()) return;
  const upstream::Finished& outcome = x.attempt->call->outcome();
  const upstream::Usage usage = outcome.usage.value_or(upstream::Usage());
  if (outcome.prefill_us > 0) {
    record.engine_ttft = std::chrono::microseconds(outcome.queue_us + outcome.prefill_us);
  }
  const dispatch::Cost cost{
      .body_bytes = x.body_bytes,
      .prompt_tokens = usage.prompt_tokens + x.attempt->call->head().trimmed_tokens,
      .completion_tokens = usage.completion_tokens};
  x.at.dispatcher->note_answer(*x.attempt->target.replica, cost, x.wanted.estimate);
  clear(x);
}

// Whatever engines died with the request aboard was not its doing. One that is hashed at the side
// may not be known yet: another answer will tell.
void RequestFlow::clear(Exchange& x) {
  if (parts_.suspects.empty() || x.at.route.deployment->managed) return;
  if (!x.fingerprint && x.job && x.job->done()) x.fingerprint = x.job->fingerprint;
  if (!x.fingerprint && !x.large && !x.job) {
    x.fingerprint =
        admission::fingerprint_of(x.at.route.deployment->uid, x.ask.endpoint->path, x.ask.body);
  }
  if (x.fingerprint) parts_.suspects.answered(*x.fingerprint, parts_.clock.wall_now());
}

// What the answer cost, as far as its replica has said so.
void RequestFlow::note_tokens(Exchange& x, const upstream::Usage& seen) {
  x.record().prompt_tokens = seen.prompt_tokens;
  x.record().completion_tokens = seen.completion_tokens;
  x.record().cached_tokens = seen.cached_tokens;
}

// The client's answer is an error: as a status if it has seen none yet, else in the stream.
Awaitable<void> RequestFlow::fail(Exchange& x, const base::Error& error) {
  if (x.attempt && x.attempt->call) note_tokens(x, x.attempt->call->seen());
  x.attempt.reset();
  x.turn.leave();
  x.place.release();
  x.aboard.leave();
  if (x.delivery.whole) {
    x.record().outcome = base::Outcome::kSucceeded;
  } else {
    x.settlement.failed(error);
  }
  if (!x.delivery.begun) {  // nobody has seen an answer of another
    x.record().degraded = {};
    x.record().rung.clear();
    x.record().trimmed.clear();
  }
  if (error.kind == base::Kind::kClientGone || std::exchange(x.delivery.closed, true)) co_return;
  if (x.delivery.begun) {
    if (!x.delivery.whole) x.delivery.payload.append(broken(x, error));
    const Piece end = x.delivery.whole ? Piece::kLast : Piece::kCutOff;
    if (x.reply.write(x.delivery.payload, end) == Sent::kBlocked) co_await x.reply.flush();
    co_return;
  }
  x.record().status = error.status;
  auto head = head_of(x, error.status, base::kJsonType);
  for (auto& header : openai::error_headers(error)) head.headers.push_back(std::move(header));
  const std::string body = dialects::error_body(x.ask.endpoint->dialect, error, x.ask.request_id);
  co_await x.reply.answer(head, body);
}

// Model and adapter, with their versions. A replica that does not tell its model has the route's.
std::string RequestFlow::backend_version(const Exchange& x) {
  const upstream::Head& told = x.attempt->call->head();
  const std::string& adapter = x.settlement.record.adapter;
  const std::string& model = told.model.empty() ? x.at.route.deployment->model : told.model;
  std::string version;
  version.reserve(model.size() + told.model_version.size() + adapter.size() + 2);
  version += model;
  if (!told.model_version.empty()) version.append("@").append(told.model_version);
  if (!adapter.empty()) version.append("+").append(adapter);
  return version;
}

AnswerHead RequestFlow::head_of(const Exchange& x, unsigned status,
                                std::string_view content_type) const {
  AnswerHead head{.status = status, .content_type = content_type, .headers = {}};
  head.headers.reserve(16);
  const RequestRecord& record = x.settlement.record;
  const auto now = parts_.clock.steady_now();
  add_beginning(head, x.settlement.age(now), record.trace_id);
  if (!record.replica.empty()) {
    head.headers.push_back({"x-penstock-backend", record.deployment});
    head.headers.push_back({"x-penstock-replica", record.replica});
    head.headers.push_back({"x-penstock-queue-ms", milliseconds_text(x.queue_wait)});
    head.headers.push_back(
        {"x-penstock-estimated-wait-ms", std::to_string(x.estimated_wait.count())});
  }
  if (!record.adapter.empty()) {
    head.headers.push_back({"x-penstock-adapter-version", record.adapter});
  }
  if (!record.degraded.empty()) {
    head.headers.push_back({"x-penstock-degraded", std::string(record.degraded)});
  }
  if (!record.trimmed.empty()) head.headers.push_back({"x-penstock-trimmed", record.trimmed});
  if (x.attempt && x.attempt->call->has_head()) {
    add_facts(head, backend_version(x), x.attempt->call->head());
  }
  add_rates(head, x.at.account->caller().meter->rate_state(now));
  return head;
}

void RequestFlow::introduce(AnswerHead& head, std::string_view traceparent,
                            base::SteadyTime received) {
  const std::string trace = traces_.accept(traceparent);
  add_beginning(head, parts_.clock.steady_now() - received, base::trace_id_of(trace));
}

void RequestFlow::begin_stream(Exchange& x, std::string_view content_type) {
  const unsigned told = x.attempt ? x.attempt->call->head().status : 0;
  const unsigned status = told != 0 ? told : 200;
  AnswerHead head = head_of(x, status, content_type);
  head.headers.push_back({"cache-control", "no-cache"});
  head.headers.push_back({"x-accel-buffering", "no"});
  x.reply.begin_stream(head);
  x.delivery.begun = true;
  x.record().status = status;
}

// What the head of a stream that was opened early could not say comes as comments.
void RequestFlow::tell_late(Exchange& x) {
  const auto told = std::exchange(x.delivery.told_early, {});
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
      std::chrono::duration_cast<milliseconds>(parts_.timers.now() - x.delivery.last_write);
  if (silence < parts_.config.heartbeat) {
    x.heartbeat.arm(parts_.config.heartbeat - silence);
    return true;
  }
  x.heartbeat.arm(parts_.config.heartbeat);
  x.delivery.last_write = parts_.timers.now();
  if (!x.delivery.begun) {
    x.delivery.told_early = head_of(x, 200, kEventStream).headers;
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
      std::chrono::duration_cast<milliseconds>(parts_.timers.now() - x.delivery.last_heard);
  if (silence >= parts_.config.silence) return true;
  x.deadline.arm(parts_.config.silence - silence);
  return false;
}

}  // namespace penstock::proxy
