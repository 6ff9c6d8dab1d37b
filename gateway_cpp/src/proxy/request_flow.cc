#include "proxy/request_flow.h"

#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "proxy/exchange.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;

// How long until a replica is expected; nothing where the head does not know.
std::optional<milliseconds> until_ready(const routing::DeploymentRoute& route,
                                        const base::Clock& clock) {
  if (route.expected_ready_at == base::WallTime{}) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(route.expected_ready_at - clock.wall_now());
}

}  // namespace

void arm_unless_none(runtime::TimerWheel::Timer& timer, milliseconds after) {
  after.count() > 0 ? timer.arm(after) : timer.disarm();
}

Awaitable<void> RequestFlow::run(Ask ask, Reply& reply) {
  // A trace of our own is for logs and the client: what is sampled, the engine's operator says.
  const std::string trace = traces_.accept(ask.traceparent);
  if (trace != ask.traceparent) ask.traceparent.clear();
  Exchange x(parts_, std::move(ask), base::trace_id_of(trace), reply);
  Failed broken;
  try {
    co_await phases(x);
  } catch (const std::exception& error) {
    parts_.log.error("request ended by an exception",
                     {{"request_id", x.ask.request_id}, {"error", error.what()}});
    broken = base::make_error(base::Kind::kInternal,
                              "The gateway failed at this request. Send it again; if that does not "
                              "help, its operator finds " +
                                  x.ask.request_id + " in the log.");
  }
  if (broken) co_await fail(x, *broken);
}

Awaitable<void> RequestFlow::phases(Exchange& x) {
  Failed no;
  if (x.ask.body.size() > upstream::kLargeBodyBytes) {
    no = co_await parse_aside(x);
  } else {
    no = parse(x);
  }
  if (!no) no = resolve(x);
  if (!no) no = admit(x);
  if (!no && !parts_.suspects.empty()) no = co_await admit_suspect(x);
  if (no) co_return co_await fail(x, *no);
  x.admitted = parts_.clock.steady_now();
  auto delivered = Delivered::kNothing;
  while (delivered == Delivered::kNothing) {
    no = co_await open(x);
    if (no) co_return co_await fail(x, *no);
    delivered = co_await deliver(x);
  }
}

RequestFlow::Failed RequestFlow::parse(Exchange& x) {
  auto request = parts_.parser.parse(*x.ask.endpoint, x.ask.body);
  if (!request) return request.error();
  x.request = std::move(*request);
  return std::nullopt;
}

RequestFlow::Failed RequestFlow::resolve(Exchange& x) {
  x.settlement.enter(base::Phase::kResolve);
  auto route = parts_.routes.read()->resolve(x.request.model);
  if (!route) return route.error();
  x.record().deployment = route->deployment->route.name;
  x.record().adapter = route->adapter;
  x.route = std::move(*route);
  // Who named no model is answered by the name of the one there is.
  if (x.request.model.empty()) x.request.model = x.record().deployment;
  return routing::refuses(x.route, x.ask.endpoint->path);
}

RequestFlow::Failed RequestFlow::admit(Exchange& x) {
  x.settlement.enter(base::Phase::kAdmit);
  const routing::DeploymentTargets& deployment = *x.route.deployment;
  const admission::Ask ask{deployment.route.name, deployment.route.availability_detail};
  const admission::Load load{.draining = parts_.state.ending.load(std::memory_order_relaxed),
                             .in_flight = parts_.state.in_flight.load(std::memory_order_relaxed),
                             .max_in_flight = parts_.config.max_in_flight,
                             .ready = deployment.count(routing::ReplicaState::kReady),
                             .with_room = deployment.with_room(),
                             .starting = deployment.count(routing::ReplicaState::kStarting),
                             .availability = deployment.route.availability,
                             .ready_in = until_ready(deployment.route, parts_.clock)};
  const auto decision = admission::decide(ask, load);
  if (const auto* no = std::get_if<admission::Reject>(&decision)) {
    return admission::to_error(ask, *no);
  }
  x.settlement.admitted();  // before anything is waited for, or more come in than may
  return std::nullopt;
}

const routing::Target* RequestFlow::select(Exchange& x) {
  x.settlement.enter(base::Phase::kSelect);
  routing::view_replicas(x.route, x.failover.tried(), parts_.clock.steady_now(), views_);
  const auto& replicas = x.route.deployment->replicas;
  x.must_wait = false;
  for (size_t i = 0; x.suspect && i < views_.size(); ++i) {
    if (!views_[i].eligible || !parts_.suspects.occupied(replicas[i].route.id.value)) continue;
    views_[i].eligible = false;
    x.must_wait = true;
  }
  const auto chosen = parts_.policy.choose(views_);
  return chosen ? &replicas[*chosen] : nullptr;
}

class RequestFlow::Listed {
 public:
  Listed(Openings& openings, Opening& opening) : opening_(opening) { openings.push_back(opening); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() { opening_.unlink(); }

 private:
  Opening& opening_;
};

// Tries replicas until one has begun to answer.
Awaitable<RequestFlow::Failed> RequestFlow::open(Exchange& x) {
  const auto own = x.route.deployment->route.limits.first_event_deadline;
  arm_unless_none(x.deadline, own.count() > 0 ? own : parts_.config.first_event_deadline);
  if (x.request.delivery == openai::Delivery::kStream) {
    arm_unless_none(x.heartbeat, parts_.config.heartbeat);
  }
  x.last_write = parts_.timers.now();
  const Listed listed(openings_, x.opening);
  for (;;) {
    Failed over;
    if (x.last) over = co_await reconsider(x);
    if (over) co_return over;
    const routing::Target* target = select(x);
    if (target != nullptr && board(x, *target)) {
      send(x, *target);
      over = co_await first_news(x);
      if (!over && x.call && !x.call->failed()) co_return std::nullopt;
    } else if (x.must_wait) {
      over = co_await wait_for_place(x);
    } else {
      break;
    }
    if (over) co_return over;
    if (!x.call) continue;
    const Next next = co_await note_failure(x);
    x.last = failure_error(x);
    if (next == Next::kGiveUp) break;
    x.call.reset();
  }
  if (x.last) co_return x.last;
  const admission::Ask ask{x.route.deployment->route.name};
  co_return admission::to_error(ask, {admission::Reason::kReplicasFull, std::chrono::seconds(1)});
}

// A suspect takes its place on the replica; false: another one was faster.
bool RequestFlow::board(Exchange& x, const routing::Target& target) {
  if (!x.suspect) return true;
  x.aboard.leave();
  auto aboard =
      parts_.suspects.board(*x.fingerprint, target.route.id.value, parts_.clock.steady_now());
  x.must_wait = !aboard;
  if (!aboard) return false;
  x.aboard = std::move(*aboard);
  return true;
}

void RequestFlow::send(Exchange& x, const routing::Target& target) {
  x.settlement.enter(base::Phase::kOpen);
  if (x.sent == base::SteadyTime{}) {
    x.sent = parts_.clock.steady_now();
    x.queue_wait = x.sent - x.admitted;
    x.settlement.opening().queue_wait.observe(x.queue_wait);
  }
  x.failover.sent_to(target.route.id);
  x.target = &target;
  x.record().replica = target.route.id.value;
  x.record().attempts = x.failover.attempts();
  x.call.reset();
  x.call = parts_.upstream.open({target.route.id.value, target.route.address}, call_request(x),
                                x.reply.signal(), x.large ? LargeBody::bytes_of(x.large) : nullptr);
  x.call->occupy(routing::InFlight(target.tracker));
}

// All calls of a thread share one message to the replica, which must be text where it says so: the
// id is ours, model and adapter are names of the routes, and the rest is checked here.
v1::CallRequest RequestFlow::call_request(const Exchange& x) {
  v1::CallRequest request;
  request.set_request_id(x.ask.request_id);
  request.set_traceparent(x.ask.traceparent);
  request.set_method("POST");
  request.set_path(x.ask.endpoint->path.data(), x.ask.endpoint->path.size());
  // A copy: the next replica may need it. Empty where the body is large.
  request.set_body(x.ask.body);
  request.set_model(x.request.model);
  request.set_adapter(x.route.adapter);
  return request;
}

// Waits until the replica answers or refuses; an error is one that no other replica can help with.
Awaitable<RequestFlow::Failed> RequestFlow::first_news(Exchange& x) {
  for (;;) {
    if (x.reply.stop() != Stop::kNo) co_return stop_error(x.reply.stop());
    if (x.call->has_head() || x.call->has_bytes() || x.call->ended()) co_return std::nullopt;
    if (x.opening.look_again) {
      auto no = co_await recall(x);
      if (no || !x.call) co_return no;
      continue;
    }
    if (x.deadline.fired()) co_return deadline_error(x);
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.reply.stop());
    co_await x.reply.signal().wait();
  }
}

}  // namespace penstock::proxy
