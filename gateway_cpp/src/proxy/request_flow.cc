#include "proxy/request_flow.h"

#include <chrono>
#include <utility>
#include <variant>

#include "openai/errors.h"
#include "proxy/failover.h"
#include "proxy/settle.h"
#include "proxy/upstream_error.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kEventStream = "text/event-stream";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPing = ": ping\n\n";
constexpr milliseconds kDoubt{1'000};  // how long a failed connection speaks against a replica

bool is_event_stream(std::string_view content_type) {
  return content_type.substr(0, kEventStream.size()) == kEventStream;
}

std::string milliseconds_text(std::chrono::nanoseconds duration) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(duration).count());
}

base::Error client_gone() {
  return base::make_error(base::Kind::kClientGone, "the client closed the connection");
}

}  // namespace

// One request's state. Destroyed in reverse order: the call is cancelled before the timers go, and
// the settlement, which counts it, comes last.
struct RequestFlow::Exchange {
  Exchange(const Parts& parts, Ask&& ask, Reply& reply)
      : settlement(parts.clock, parts.log, parts.metrics, parts.state, ask.received),
        ask(std::move(ask)),
        reply(reply),
        heartbeat(parts.timers, reply.signal()),
        deadline(parts.timers, reply.signal()) {
    record().request_id = this->ask.request_id;
    record().client_request_id = this->ask.client_request_id;
  }

  RequestRecord& record() { return settlement.record; }

  Settlement settlement;
  Ask ask;
  Reply& reply;
  openai::Request request;
  routing::Route route;
  TimerWheel::Timer heartbeat;
  TimerWheel::Timer deadline;
  base::SteadyTime last_write;  // the client's last sign of life from us, coarse
  base::SteadyTime admitted;
  base::SteadyTime sent;                   // when the request first went to a replica
  std::chrono::nanoseconds queue_wait{0};  // admission to that
  Failover failover;
  routing::InFlight in_flight;
  bool stream_begun = false;  // the client has a status, and may have comments
  upstream::Payload payload;
  std::unique_ptr<upstream::Call> call;
};

Awaitable<void> RequestFlow::run(Ask ask, Reply& reply) {
  Exchange x(parts_, std::move(ask), reply);
  auto request = parse(x);
  if (!request) co_return co_await fail(x, request.error());
  auto route = resolve(x, *request);
  if (!route) co_return co_await fail(x, route.error());
  x.request = std::move(*request);
  x.route = std::move(*route);
  const auto no = admit(x);
  if (no) co_return co_await fail(x, *no);
  const auto lost = co_await open(x);
  if (lost) co_return co_await fail(x, *lost);
  co_await deliver(x);
}

base::Result<openai::Request> RequestFlow::parse(Exchange& x) {
  return parts_.parser.parse(x.ask.endpoint, x.ask.body);
}

base::Result<routing::Route> RequestFlow::resolve(Exchange& x, const openai::Request& request) {
  x.settlement.enter(base::Phase::kResolve);
  auto route = parts_.routes.read()->resolve(request.model);
  if (route) {
    x.record().deployment = route->deployment->route.name;
    x.record().adapter = route->adapter;
  }
  return route;
}

std::optional<base::Error> RequestFlow::admit(Exchange& x) {
  x.settlement.enter(base::Phase::kAdmit);
  const routing::DeploymentTargets& deployment = *x.route.deployment;
  const admission::Ask ask{deployment.route.name};
  const admission::Load load{.draining = parts_.state.draining.load(std::memory_order_relaxed),
                             .in_flight = parts_.state.in_flight.load(std::memory_order_relaxed),
                             .max_in_flight = parts_.config.max_in_flight,
                             .ready = deployment.count(routing::ReplicaState::kReady),
                             .with_room = deployment.with_room(),
                             .starting = deployment.count(routing::ReplicaState::kStarting)};
  const auto decision = admission::decide(ask, load);
  if (const auto* no = std::get_if<admission::Reject>(&decision)) {
    return admission::to_error(ask, *no);
  }
  x.settlement.admitted();
  x.admitted = parts_.clock.steady_now();
  return std::nullopt;
}

const routing::Target* RequestFlow::select(Exchange& x) {
  x.settlement.enter(base::Phase::kSelect);
  routing::view_replicas(x.route, x.failover.tried(), parts_.clock.steady_now(), views_);
  const auto chosen = parts_.policy.choose(views_);
  return chosen ? &x.route.deployment->replicas[*chosen] : nullptr;
}

// Tries replicas until one has begun to answer.
Awaitable<RequestFlow::Failed> RequestFlow::open(Exchange& x) {
  const auto own = x.route.deployment->route.limits.first_event_deadline;
  x.deadline.arm(own.count() > 0 ? own : parts_.config.first_event_deadline);
  if (x.request.delivery == openai::Delivery::kStream) x.heartbeat.arm(parts_.config.heartbeat);
  x.last_write = parts_.timers.now();
  Failed last;
  for (;;) {
    const routing::Target* target = select(x);
    if (target == nullptr) break;
    send(x, *target);
    auto over = co_await first_news(x);
    if (over) co_return over;
    if (!x.call->failed()) {
      target->tracker->mark_up();
      x.deadline.disarm();
      co_return std::nullopt;
    }
    note_failure(x, *target);
    last = to_error(x.call->failure().error);
    if (x.failover.after(x.call->failure()) == Next::kGiveUp) break;
  }
  if (!last) {
    const admission::Ask ask{x.route.deployment->route.name};
    last = admission::to_error(ask, {admission::Reason::kReplicasFull, std::chrono::seconds(1)});
  }
  co_return last;
}

void RequestFlow::send(Exchange& x, const routing::Target& target) {
  x.settlement.enter(base::Phase::kOpen);
  if (x.failover.attempts() == 0) {
    x.sent = parts_.clock.steady_now();
    x.queue_wait = x.sent - x.admitted;
    x.settlement.opening().queue_wait.observe(x.queue_wait);
  }
  x.failover.sent_to(target.route.id);
  x.record().replica = target.route.id.value;
  x.record().attempts = x.failover.attempts();
  x.in_flight = routing::InFlight(target.tracker);
  v1::CallRequest request;
  request.set_request_id(x.ask.request_id);
  request.set_traceparent(x.ask.traceparent);
  request.set_method("POST");
  request.set_path(x.ask.path.data(), x.ask.path.size());
  // A copy: the next replica may need it.
  request.set_body(x.ask.body);
  request.set_model(x.request.model);
  request.set_adapter(x.route.adapter);
  x.call.reset();
  x.call = parts_.upstream.open({target.route.id.value, target.route.address}, std::move(request),
                                x.reply.signal());
}

// Waits until the replica answers or refuses; an error is one that no other replica can help with.
Awaitable<RequestFlow::Failed> RequestFlow::first_news(Exchange& x) {
  for (;;) {
    if (x.reply.client_gone()) co_return client_gone();
    if (x.call->has_head() || x.call->has_bytes() || x.call->ended()) co_return std::nullopt;
    if (x.deadline.fired()) {
      co_return base::make_error(base::Kind::kDeadlineExceeded,
                                 "no replica began to answer within " +
                                     milliseconds_text(parts_.clock.steady_now() - x.sent) +
                                     " ms. Send the request again later.");
    }
    if (x.heartbeat.fired() && !beat(x)) co_return client_gone();
    co_await x.reply.signal().wait();
  }
}

void RequestFlow::note_failure(Exchange& x, const routing::Target& target) {
  const upstream::CallFailure& failure = x.call->failure();
  if (!speaks_against_replica(failure)) return;
  target.tracker->mark_down(parts_.clock.steady_now() + kDoubt);
  parts_.log.warning("replica marked down", {{"request_id", x.ask.request_id},
                                             {"replica_id", target.route.id.value},
                                             {"error_code", failure.error.code()},
                                             {"error", failure.error.message()}});
}

Awaitable<void> RequestFlow::deliver(Exchange& x) {
  x.settlement.enter(base::Phase::kStream);
  std::string().swap(x.ask.body);  // no other replica will need it
  const bool streamed = x.stream_begun || is_event_stream(x.call->head().content_type());
  if (streamed) co_return co_await stream(x);
  co_await unary(x);
}

// Bytes as they come, one write for all that came since the last. While the client is slow nothing
// is taken, so no credit goes back and the replica is held.
Awaitable<void> RequestFlow::stream(Exchange& x) {
  upstream::Call& call = *x.call;
  if (!x.stream_begun) begin_stream(x, call.head().content_type());
  x.heartbeat.arm(parts_.config.heartbeat);
  RequestRecord& record = x.record();
  for (;;) {
    if (call.has_bytes() || call.ended()) {
      record.events += call.pending_events();
      call.take(x.payload);
      const uint64_t bytes = x.payload.size();
      Piece piece = call.ended() ? Piece::kLast : Piece::kMore;
      if (call.failed()) {
        const base::Error error = to_error(call.failure().error);
        x.payload.append(openai::error_event(error));
        x.settlement.failed(error);
        piece = Piece::kCutOff;
      } else if (bytes > 0) {
        x.settlement.first_byte();
      }
      Sent sent = x.reply.write(x.payload, piece);
      if (sent == Sent::kBlocked) sent = co_await x.reply.flush();
      if (sent == Sent::kGone) co_return;
      record.bytes += bytes;
      x.last_write = parts_.timers.now();
      if (piece != Piece::kMore) break;
      call.wrote(bytes);
    }
    if (x.reply.client_gone()) co_return;
    if (x.heartbeat.fired() && !beat(x)) co_return;
    if (!call.has_bytes() && !call.ended()) co_await x.reply.signal().wait();
  }
  if (call.finished()) {
    record.outcome = base::Outcome::kSucceeded;
    record.prompt_tokens = call.outcome().usage().prompt_tokens();
    record.completion_tokens = call.outcome().usage().completion_tokens();
  }
}

Awaitable<void> RequestFlow::unary(Exchange& x) {
  upstream::Call& call = *x.call;
  std::string body;
  while (!call.ended()) {
    if (x.reply.client_gone()) co_return;
    if (call.has_bytes()) {
      call.take(x.payload);
      body += x.payload.bytes();
      call.wrote(x.payload.size());
      x.payload.clear();
    }
    co_await x.reply.signal().wait();
  }
  if (call.failed()) {
    const base::Error error = to_error(call.failure().error);
    co_return co_await fail(x, error);
  }
  call.take(x.payload);
  body += x.payload.bytes();
  RequestRecord& record = x.record();
  record.status = call.head().status() != 0 ? call.head().status() : 200;
  record.prompt_tokens = call.outcome().usage().prompt_tokens();
  record.completion_tokens = call.outcome().usage().completion_tokens();
  x.settlement.first_byte();
  const std::string_view type = call.head().content_type();
  const auto head = head_of(x, record.status, type.empty() ? kJson : type);
  const Sent sent = co_await x.reply.answer(head, body);
  if (sent == Sent::kGone) co_return;
  record.outcome = base::Outcome::kSucceeded;
  record.events = 1;
  record.bytes = body.size();
}

// The client's answer is an error: as a status if it has seen none yet, else in the stream.
Awaitable<void> RequestFlow::fail(Exchange& x, const base::Error& error) {
  x.call.reset();
  x.settlement.failed(error);
  if (error.kind == base::Kind::kClientGone) co_return;
  if (x.stream_begun) {
    x.payload.append(openai::error_event(error));
    if (x.reply.write(x.payload, Piece::kCutOff) == Sent::kBlocked) co_await x.reply.flush();
    co_return;
  }
  x.record().status = error.status;
  auto head = head_of(x, error.status, kJson);
  for (auto& header : openai::error_headers(error)) head.headers.push_back(std::move(header));
  const std::string body = openai::error_body(error);
  co_await x.reply.answer(head, body);
}

AnswerHead RequestFlow::head_of(const Exchange& x, unsigned status,
                                std::string_view content_type) const {
  AnswerHead head{.status = status, .content_type = content_type, .headers = {}};
  head.headers.reserve(8);
  head.headers.push_back({"openai-processing-ms", milliseconds_text(x.settlement.age())});
  const RequestRecord& record = x.settlement.record;
  if (!record.replica.empty()) {
    head.headers.push_back({"x-penstock-backend", record.deployment});
    head.headers.push_back({"x-penstock-replica", record.replica});
    head.headers.push_back({"x-penstock-queue-ms", milliseconds_text(x.queue_wait)});
  }
  if (!record.adapter.empty()) {
    head.headers.push_back({"x-penstock-adapter-version", record.adapter});
  }
  return head;
}

void RequestFlow::begin_stream(Exchange& x, std::string_view content_type) {
  const unsigned status = x.call && x.call->head().status() != 0 ? x.call->head().status() : 200;
  AnswerHead head = head_of(x, status, content_type);
  head.headers.push_back({"cache-control", "no-cache"});
  head.headers.push_back({"x-accel-buffering", "no"});
  x.reply.begin_stream(head);
  x.stream_begun = true;
  x.record().status = status;
}

// After enough silence an SSE comment, which opens the stream if need be: every check that can
// still give a status has passed. False: the client is gone.
bool RequestFlow::beat(Exchange& x) {
  const auto silence = std::chrono::duration_cast<milliseconds>(parts_.timers.now() - x.last_write);
  if (silence < parts_.config.heartbeat) {
    x.heartbeat.arm(parts_.config.heartbeat - silence);
    return true;
  }
  x.heartbeat.arm(parts_.config.heartbeat);
  x.last_write = parts_.timers.now();
  if (!x.stream_begun) begin_stream(x, kEventStream);
  upstream::Payload ping;
  ping.append(kPing);
  parts_.metrics.heartbeats.add();
  return x.reply.write(ping, Piece::kMore) != Sent::kGone;
}

}  // namespace penstock::proxy
