// Where a deployment has a router program beside this gateway, it says which replica a request
// whose turn has come goes to. It has its place by then, so whatever the program does, it goes on.
#include <chrono>
#include <utility>

#include "base/hex_text.h"
#include "dispatch/dispatchers.h"
#include "proxy/exchange.h"
#include "proxy/program_links.h"
#include "proxy/program_route.h"
#include "proxy/request_flow.h"

namespace penstock::proxy {

using admission::ProgramOutcome;
using std::chrono::milliseconds;

namespace {

constexpr size_t kMostEngines = 256;  // that a program is told of

std::string_view name_of(routing::Role role) {
  if (role == routing::Role::kPrefill) return "prefill";
  return role == routing::Role::kDecode ? "decode" : "";
}

// The place that the request has is one that its replica would give it.
void describe_engine(const dispatch::Engine& engine, bool is_own, v1::EngineView& view) {
  view.set_replica_id(engine.replica->id().value);
  view.set_role(std::string(name_of(engine.role)));
  view.set_running(engine.running);
  view.set_waiting(engine.waiting);
  view.set_waiting_tokens(engine.waiting_tokens);
  view.set_kv_usage(engine.kv_usage);
  view.set_places_left(engine.places_left + (is_own ? 1 : 0));
  view.set_moves_kv(engine.moves_kv);
  view.set_decoding(engine.generating - (is_own && engine.generating > 0 ? 1 : 0));
}

}  // namespace

void EndRoute::operator()(ProgramRoute* route) const { delete route; }

// Once for each deployment that it comes to. Several prompts have no one place; what is pooled
// leaves nothing to decode; and what engines may die of goes where it is alone.
bool RequestFlow::asks_program(const Exchange& x) {
  return x.at.has_place() && !x.program && x.at.route.deployment->program &&
         x.request.prompts == 1 && x.ask.endpoint->streams && !x.danger.may_kill() &&
         x.attempts.failover().tried().empty();
}

v1::RouteAsk RequestFlow::route_ask(const Exchange& x, const EngineErrand& errand,
                                    milliseconds within) {
  v1::RouteAsk ask;
  ask.set_program_digest(errand.program.digest);
  ask.set_args(errand.program.args);
  ask.set_request_id(x.ask.request_id);
  ask.set_deployment(errand.deployment);
  ask.set_path(std::string(x.ask.endpoint->path));
  ask.set_adapter(x.settlement.record.adapter());
  if (x.at.wanted.session != 0) base::append_hex(*ask.mutable_session(), x.at.wanted.session);
  ask.set_category(x.ask.category);
  ask.set_estimated_tokens(static_cast<uint32_t>(x.at.wanted.estimate.prompt));
  ask.set_deadline_ms(static_cast<uint32_t>(within.count()));
  for (const auto& engine : errand.engines) {
    describe_engine(engine, engine.replica->id() == errand.own, *ask.add_engines());
  }
  return ask;
}

// Null: nobody is asked.
std::unique_ptr<ProgramRoute> RequestFlow::question_for(Exchange& x) {
  const routing::DeploymentRoute& route = *x.at.route.deployment;
  const std::string& uid = dispatch::key_of(route);
  auto link = parts_.programs.to(uid, route.program->digest);
  const auto now = parts_.clock.steady_now();
  if (!link || !parts_.program_book.ask(uid, route.name, route.program->digest, now)) {
    return nullptr;
  }
  const auto own = route.limits.first_event_deadline;
  const milliseconds within =
      within_deadline(x, own.count() > 0 ? own : parts_.config.first_event_deadline);
  EngineErrand errand{
      .parts = parts_,
      .news = x.reply.signal(),
      .uid = uid,
      .deployment = route.name,
      .program = *route.program,
      .dispatcher = x.at.dispatcher,
      .engines = x.at.dispatcher->engines_like(*x.at.replica()),
      .own = x.at.replica()->id(),
      .request = call_request(x),
      .body = [&x] { return std::string_view(x.large ? *x.large->text : x.ask.body); },
      .room = [&x] { return (x.large ? x.large->share : x.ask.share).again(); }};
  if (errand.engines.size() > kMostEngines) errand.engines.resize(kMostEngines);
  ProgramRoute::About about{.ask = route_ask(x, errand, within), .within = within};
  return std::make_unique<ProgramRoute>(std::move(errand), std::move(link), std::move(about),
                                        x.program_waker());
}

// A client that leaves ends it, and so does what makes the request a suspect.
Awaitable<base::MaybeError> RequestFlow::ask_program(Exchange& x) {
  note_waited(x, parts_.clock.steady_now());
  x.program.reset(question_for(x).release());
  if (!x.program) co_return std::nullopt;
  while (x.program->advance()) {
    if (x.program->death() != nullptr) break;
    if (x.stop() != Stop::kNo) {
      settle_program(x, ProgramOutcome::kAbandoned, {});
      co_return stop_error(x.stop());
    }
    if (x.opening.look_again) {
      x.program.reset();
      co_return std::nullopt;
    }
    if (x.heartbeat.fired() && !beat(x)) co_return stop_error(x.stop());
    co_await x.reply.signal().wait();
  }
  if (x.program->death() != nullptr) co_return co_await die_of_leg(x);
  follow_program(x);
  x.waits_from = parts_.clock.steady_now();
  co_return std::nullopt;
}

// It may be what the engine died of: no other one is to die of it.
Awaitable<base::MaybeError> RequestFlow::die_of_leg(Exchange& x) {
  const LegDeath death = *x.program->death();
  x.record().replica = death.replica.value;
  x.record().legs = x.program->legs();
  x.attempts.died_at(death.replica, death.failure);
  x.program.reset();
  x.at.leave_unused();
  x.danger.guilty = true;
  co_await know_fingerprint(x);
  if (x.danger.fingerprint) suspect(x);
  auto error = base::make_error(base::Kind::kEngineDead, death.failure.error.message());
  error.quotes = death.failure.source == upstream::CallFailure::Source::kReplica;
  error.code = "engine_dead";
  error.retry_after = std::chrono::seconds(1);
  x.attempts.failed(error);
  co_return error;
}

void RequestFlow::follow_program(Exchange& x) {
  const std::string replica = x.program->replica();
  ProgramOutcome outcome = x.program->outcome();
  if (!replica.empty() && !x.at.move_place({replica})) outcome = ProgramOutcome::kNoPlace;
  const bool is_full = outcome == ProgramOutcome::kNoPlace;
  settle_program(x, outcome, is_full ? replica + " is full" : x.program->why());
}

void RequestFlow::settle_program(Exchange& x, ProgramOutcome outcome, const std::string& why) {
  x.program->settle(outcome, why);
  x.record().program = x.program->decision();
  x.record().legs = x.program->legs();
}

}  // namespace penstock::proxy
