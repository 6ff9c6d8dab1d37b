#include "proxy/request_flow.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "proxy/exchange.h"
#include "proxy/program_route.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

// As engines order by: the lower goes first.
int engine_priority(base::Priority priority) {
  return static_cast<int>(base::Priority::kNormal) - static_cast<int>(priority);
}

}  // namespace

base::Error gone_from_routes(const std::string& deployment) {
  return base::make_error(base::Kind::kModelNotFound,
                          "The model `" + deployment + "` was just deleted.", "model");
}

void arm_unless_none(runtime::TimerWheel::Timer& timer, milliseconds after) {
  after.count() > 0 ? timer.arm(after) : timer.disarm();
}

// The phases in their order, in the request's own coroutine: one more about them would cost every
// request a frame.
Awaitable<void> RequestFlow::run(Ask& ask, Reply& reply) {
  Exchange x(parts_, ask, trace_of(ask), reply);
  if (!x.key.id.empty()) keyed_.add(x.key, *parts_.routes.read());
  base::MaybeError no;
  try {
    if (x.ask.body.size() > upstream::kLargeBodyBytes) {
      no = co_await parse_aside(x);
    } else {
      no = parse(x);
    }
    if (!no) no = resolve(x);
    if (!no) no = admit_to_gateway(x);
    if (no) co_return co_await fail(x, *no);
    if (!x.named().deployment->shadows.empty()) sample(x);
    // To a suspect no rung is open that has an engine: it may rather have to wait.
    if (x.at.dispatcher->turns_away() && x.has_ladder()) co_await mark_suspect(x);
    no = admit_to_deployment(x);
    if (!no && !parts_.suspects.empty()) no = co_await admit_suspect(x);
    auto delivered = Delivered::kNothing;
    while (delivered != Delivered::kYes) {
      if (no) no = co_await move_on(x, *no);
      if (no) co_return co_await fail(x, *no);
      no = co_await open(x);
      if (no) continue;
      delivered = co_await deliver(x);
      if (delivered == Delivered::kBroken) no = x.attempts.last();
    }
    co_return;
  } catch (const std::exception& error) {
    no = broken_by(x, error);
  }
  co_await fail(x, *no);
}

// Without a collector a trace of our own is for logs and the client alone.
base::TraceContext RequestFlow::trace_of(Ask& ask) {
  base::TraceContext trace = traces_.accept(ask.traceparent);
  if (trace.parent == 0) ask.traceparent.clear();
  trace.sampled = observe::is_sampled(parts_.tracer.rule(), trace);
  return trace;
}

base::MaybeError RequestFlow::broken_by(const Exchange& x, const std::exception& error) {
  parts_.log.error("request ended by an exception",
                   {{"request_id", x.ask.request_id}, {"error", error.what()}});
  return base::make_error(base::Kind::kInternal,
                          "The gateway failed at this request. Send it again; if that does not "
                          "help, its operator finds " +
                              x.ask.request_id + " in the log.");
}

base::MaybeError RequestFlow::parse(Exchange& x) {
  auto request = parts_.parser.parse(*x.ask.endpoint, x.ask.body, parts_.config.body_elements);
  if (!request) return request.error();
  x.take(std::move(*request));
  return std::nullopt;
}

// One attempt after the other, until a replica has begun to answer.
Awaitable<base::MaybeError> RequestFlow::open(Exchange& x) {
  const auto own = x.at.route.deployment->limits.first_event_deadline;
  const Openings::Listed listed(openings_, x.opening);
  for (;;) {
    base::MaybeError over;
    if (x.attempts.last()) over = co_await reconsider(x);
    if (x.sent != base::SteadyTime{}) x.waits_from = x.settlement.enter(base::Phase::kAdmit);
    if (!over && !x.danger.suspect && x.at.was_given_place()) {
      over = take_place(x);
    } else if (!over) {
      over = co_await select(x);
    }
    if (!over && x.at.route.deployment->program && asks_program(x)) over = co_await ask_program(x);
    if (!over && x.opening.look_again) over = co_await look_at_waiting(x);
    if (over || !x.at.has_place()) note_waited(x, parts_.clock.steady_now());
    if (over) co_return over;
    if (!x.at.has_place()) continue;  // a suspect by now: it has another turn
    const auto limit = own.count() > 0 ? own : parts_.config.first_event_deadline;
    arm_unless_none(x.deadline, within_deadline(x, limit));
    send(x);
    over = co_await first_news(x);
    if (over) co_return over;
    if (!x.attempts.is_under_way()) continue;  // it was called back, or left
    if (!x.attempts.call().failed()) {
      if (x.program) x.program->was_scheduled();
      co_return std::nullopt;
    }
    const Next next = begins_again(x, co_await note_failure(x));
    close(x, failure_error(x));
    if (next == Next::kGiveUp) co_return no_replica_left(x);
    over = co_await wait_to_begin_again(x);
    if (over) co_return over;
  }
}

// For the first time with this deployment.
void RequestFlow::note_opening(Exchange& x, base::SteadyTime now) {
  const auto& metrics = x.settlement.opening();
  metrics->sent.add();
  metrics->sent_wait_us.add(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now - x.at.entered).count()));
  metrics->note_estimate(x.at.estimated_wait, now - x.at.entered);
  x.at.account->open(*x.at.route.deployment, x.record().adapter(), metrics);
}

// Each time that it has waited for a place, with one or in vain.
void RequestFlow::note_waited(Exchange& x, base::SteadyTime now) {
  const auto waited = now - std::exchange(x.waits_from, now);
  x.record().queue_wait += waited;
  x.record().here()->waited += waited;
}

void RequestFlow::send(Exchange& x) {
  const auto now = x.settlement.enter(base::Phase::kOpen);
  note_waited(x, now);
  if (x.sent == base::SteadyTime{}) x.sent = now;
  Resumption* const rest = x.pauses() ? x.record().resumption.get() : nullptr;
  if (rest) ++rest->attempts;
  if (x.shadow && !(rest && !rest->anew)) x.shadow->answer.begin_again();
  if (!x.settlement.is_open()) note_opening(x, now);
  if (x.canary && !rest && (x.is_at_home() || !x.canary->candidate)) note_revision(x);
  Target target(x.at.replica());
  x.record().send(target.id, why_sent(x), x.settlement.age_us(now));
  x.attempts.sent_to(target);
  x.record().replica = target.id;
  const unsigned number = ++x.record().attempts_made;
  auto request = call_request(x);
  std::optional<base::TraceParent> parent;  // of the attempt's own span
  if (parts_.tracer.rule().collects) {
    parent.emplace(x.trace, x.trace.span_of_attempt(number));
    request.traceparent = parent->text();
  }
  if (x.program && !rest) request.kv = x.program->take_kv(target.id);
  const upstream::Resume resume = rest && !rest->anew ? resume_of(x) : upstream::Resume();
  if (rest && !rest->anew) request.resume = &resume;
  auto call = parts_.upstream.open({target.id, target.address, target.replica->own_token()},
                                   request, x.reply.signal(), x.large_body());
  const uint32_t config = x.at.config();
  call->hold(held_for(x));
  x.attempts.begin(std::move(target), std::move(call), config);
}

// Why it is sent: for the first time with this deployment, or after which end of the one before.
std::string_view RequestFlow::why_sent(const Exchange& x) {
  constexpr std::array<std::string_view, base::kResumeReasons> kResumes = {
      "resume:kill", "resume:hang", "resume:crash", "resume:lost", "resume:hand_over"};
  if (x.pauses()) return kResumes[static_cast<size_t>(x.settlement.record.resumption->reason)];
  const Failover& before = x.attempts.failover();
  if (before.tried().empty()) return "first";
  return before.refused().empty() ? "again" : "failover";
}

// With the call that is under way, if one is.
void RequestFlow::note_attempt_over(Exchange& x, const base::Error& why) {
  if (!x.attempts.is_under_way()) return;
  x.record().end_attempt(why.code, x.settlement.age_us());
  x.record().attempts.back().cached_tokens = x.attempts.call().seen().cached_tokens;
}

// It was in vain, and another may follow.
void RequestFlow::close(Exchange& x, base::Error why) {
  note_attempt_over(x, why);
  x.attempts.close(std::move(why));
}

// Likewise, and none may.
void RequestFlow::fail_attempt(Exchange& x, base::Error why) {
  note_attempt_over(x, why);
  x.attempts.failed(std::move(why));
}

// What its calls before have cost is paid for.
upstream::Held RequestFlow::held_for(Exchange& x) {
  upstream::Held held{.place = x.at.give_place(), .payer = x.at.account, .seen = {}};
  const Resumption* const before = x.record().resumption.get();
  if (before != nullptr) held.paid = before->paid;
  if (x.pauses()) held.seen = before->seen;
  return held;
}

upstream::Resume RequestFlow::resume_of(const Exchange& x) {
  const RequestRecord& record = x.settlement.record;
  const upstream::Head& head = record.resumption->head;
  return {.groups = x.delivered->record(),
          .events = static_cast<uint32_t>(record.events),
          .created = head.created,
          .cached_tokens = head.cached_tokens};
}

// Where no other replica is left to have room for its adapter, the request waits for room where it
// is, as long as it may wait for a replica.
uint32_t RequestFlow::adapter_wait_ms(const Exchange& x) {
  if (x.attempts.failover().is_left() && is_another_ready(x)) return 0;
  constexpr milliseconds kLongest{30'000};
  const milliseconds limit = x.at.route.deployment->limits.queue_deadline;
  const auto since = x.pauses() ? x.settlement.record.resumption->since : x.at.entered;
  const auto waited = std::chrono::ceil<milliseconds>(parts_.clock.steady_now() - since);
  const milliseconds left = (limit.count() > 0 ? std::min(limit, kLongest) : kLongest) - waited;
  return static_cast<uint32_t>(std::max(left, milliseconds(1)).count());
}

// All calls of a thread share one message to the replica, which must be text where it says so: the
// id is ours, model and adapter are names of the routes, and the rest is checked here.
upstream::CallRequest RequestFlow::call_request(const Exchange& x) {
  const std::string& adapter = x.settlement.record.adapter();
  const routing::DeploymentRoute& deployment = *x.at.route.deployment;
  const routing::Limits& limits = deployment.limits;
  upstream::CallRequest request{
      .request_id = x.ask.request_id,
      .traceparent = x.traceparent(),
      .method = "POST",
      .path = x.ask.endpoint->path,
      .body = x.ask.body,  // empty where it is large
      .model = x.request.model,
      .adapter = adapter,
      .priority = engine_priority(x.at.wanted.priority),
      .tenant_salt = x.caller().tenant->cache_salt,
      .token_groups = x.may_resume(),
      .max_prompt_tokens = limits.max_prompt_tokens,
      .max_completion_tokens = longest_answer(deployment, x.request, *x.at.account, x.day_ask()),
      .adapter_digest = x.at.route.digest(),
      .adapter_wait_ms = adapter.empty() ? 0 : adapter_wait_ms(x),
      .trim = x.trims(),
      .tenant = x.caller().tenant->id};
  set_prices(request, deployment);
  return request;
}

// Waits until the replica answers or refuses; an error is one that no other replica can help with.
// What a canary says before its first event is no answer yet: another may still give one.
Awaitable<base::MaybeError> RequestFlow::first_news(Exchange& x) {
  Running running(x.reply.signal(), x.attempts.now().target().replica);
  running_.add(running);
  for (;;) {
    if (x.stop() != Stop::kNo) co_return stop_error(x.stop());
    const bool has_news =
        x.at.way == Way::kCanary ? x.attempts.now().has_event() : x.attempts.now().has_news();
    if (has_news) co_return std::nullopt;
    if (running.word == routing::Word::kStuck) {
      if (co_await leaves_stuck(x)) co_return std::nullopt;
    }
    if (x.opening.look_again) {
      auto no = co_await recall(x);
      if (no || !x.attempts.is_under_way()) co_return no;
      continue;
    }
    if (x.deadline.fired()) co_return deadline_error(x);
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
}

}  // namespace penstock::proxy
