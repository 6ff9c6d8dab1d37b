// One request's state on its way through the phases. On its I/O thread, in its flow's frame.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/ladder.h"
#include "admission/suspects.h"
#include "base/trace_context.h"
#include "dispatch/dispatcher.h"
#include "openai/request.h"
#include "proxy/account.h"
#include "proxy/attempt.h"
#include "proxy/body_job.h"
#include "proxy/canary_arm.h"
#include "proxy/delivered_tokens.h"
#include "proxy/delivery.h"
#include "proxy/destination.h"
#include "proxy/lookout.h"
#include "proxy/parts.h"
#include "proxy/reply.h"
#include "proxy/settle.h"
#include "proxy/shadow_sample.h"
#include "proxy/wake_up.h"
#include "routing/route_table.h"
#include "runtime/timer_wheel.h"
#include "upstream/call.h"

namespace penstock::proxy {

// A request on its way down the ladder of the deployment that it asked for.
struct Descent {
  Descent(routing::Route route, admission::DegradeReason reason)
      : asked(std::move(route)), walk(*asked.deployment, reason) {}

  // What the request ends with where no rung is left, and what it had been told by then.
  struct Ending {
    base::Error error;
    std::string deployment;
    std::string adapter;
    std::string replica;
    std::chrono::milliseconds estimated_wait{0};
    upstream::Usage seen = {};  // of an answer that broke
  };

  // A prompt that was cut is too long no more: what stands in its way now has rungs of its own.
  bool is_turned_by(admission::DegradeReason reason) const {
    return rung != nullptr && rung->kind == routing::Rung::Kind::kTrim &&
           !admission::is_too_long(reason);
  }

  // Why a rung did not help.
  void note(std::string_view name, std::string_view why) {
    if (!tried.empty()) tried += ", ";
    tried.append(name).append("=").append(why);
  }

  const routing::Route asked;
  admission::LadderWalk walk;
  Ending ending;
  const routing::Rung* rung = nullptr;  // that it is on; null: none yet
  bool no_engine = false;               // engines may die of it
  std::string tried;                    // rungs that did not help, each with its reason
};

// What is known of a request that engines may die of, and its place among those.
struct Danger {
  // Known for a suspect, and for one that was looked at.
  std::optional<admission::Fingerprint> fingerprint;
  bool suspect = false;                         // with the deployment where it is
  bool guilty = false;                          // engines have died of it, for all that is known
  bool spared = false;                          // what its own engine ended of holds it not back
  std::optional<base::SteadyTime> waits_since;  // for a place where no other suspect is
  admission::Aboard aboard;

  bool may_kill() const { return suspect || guilty; }
  // To another deployment, where it has another fingerprint.
  void leave() {
    aboard.leave();
    fingerprint.reset();
    suspect = false;
    spared = false;
    waits_since.reset();
  }
};

class ProgramRoute;

struct EndRoute {
  void operator()(ProgramRoute* route) const;
};

// Destroyed in reverse order: the call is cancelled before the timers go, and the settlement, which
// counts it, comes last, with what it still looks at.
struct Exchange {
  // What it is made of lives longer than this.
  Exchange(const ThreadParts& its, Ask& asked, const base::TraceContext& in, Reply& to)
      : parts(its),
        ask(asked),
        trace(in),
        trace_parent(trace, trace.span),
        settlement(parts.settling, ask.received),
        at(std::make_shared<Account>(parts.clock, parts.usage, ask.caller)),
        queue_deadline(parts.timers, to.signal()),
        heartbeat(parts.timers, to.signal()),
        deadline(parts.timers, to.signal()),
        reply(to),
        delivery(ask.endpoint->dialect) {
    record().request_id = ask.request_id;
    record().client_request_id = ask.client_request_id;
    record().trace_id = trace_parent.trace_id();
    record().trace = trace;
    record().path = ask.endpoint->path;
    record().operation = ask.endpoint->operation;
    record().tenant = ask.caller.tenant->id;
    record().key_id = ask.caller.key_id;
    record().client = ask.client;
    key.id = ask.caller.key_id;
    key.news = opening.news = &to.signal();
    opening.bytes = ask.body.size();
  }
  ~Exchange() {
    record().cost_nanousd = std::max(record().cost_nanousd, at.account->cost_nanousd());
    if (canary) end_canary();
    if (job) job->leave();
    if (waker) waker->leave();
    if (shadow) end_sample();
    if (delivery.refused() || attempts.refused() || at.refused()) log_refused();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  RequestRecord& record() { return settlement.record; }
  // What its body says, be it for another endpoint than its path names.
  void take(openai::Request&& read) {
    request = std::move(read);
    ask.endpoint = request.endpoint;
    record().path = request.endpoint->path;
    record().operation = request.endpoint->operation;
    record().model.assign(request.model, 0, kMostKeptModelBytes);
    record().prompt_version = request.prompt_version;
    record().streamed = request.form == openai::AnswerForm::kStream;
  }
  // For its turn, where it has to wait for one.
  std::shared_ptr<dispatch::Waker> make_waker() {
    if (!waker) waker = std::make_shared<WakeUp>(parts.io, reply.signal());
    return waker;
  }
  std::shared_ptr<runtime::WakeUp> program_waker() {
    make_waker();
    return waker;
  }
  // Why it goes no further.
  Stop stop() const {
    const Stop told = reply.stop();
    return told == Stop::kNo && key.ended ? Stop::kKeyRevoked : told;
  }
  // A step that no table has is a fault of ours.
  void log_refused() noexcept;
  // How it ended otherwise than well.
  void failed(const base::Error& error) {
    settlement.failed(error);
    const bool is_told = settlement.record.resumption && settlement.record.resumption->was_broken;
    if (canary && !is_told) canary->course.failed(error, record().ttft.has_value());
  }
  // Its arm is told of it.
  void end_canary() noexcept;
  admission::CanaryAnswer canary_answer() const;
  // It has settled: its shadows may begin.
  void end_sample() noexcept;
  void fill(ShadowSample& sample);
  void describe(v1::ShadowAnswer& answer);
  // Only streams of chunks have room for it.
  bool wants_metadata() const {
    return ask.wants_metadata && ask.endpoint->dialect == openai::Dialect::kOpenAi;
  }

  // What is called for it is told of its trace: the parent is its own span. Without a collector
  // nobody would ever see that one, so they are told what its client said.
  std::string_view traceparent() const {
    return parts.tracer.rule().collects ? trace_parent.text() : std::string_view(ask.traceparent);
  }
  const admission::Caller& caller() const { return at.account->caller(); }
  // What it asked for, wherever it is, as long as it has taken no rung.
  const routing::Route& named() const { return asked ? *asked : at.route; }
  bool has_left(const std::string& deployment) const {
    return std::ranges::find(left, deployment, &Departure::deployment) != left.end();
  }
  // What the requests of one conversation say alike; empty: nothing.
  std::string_view session_name() const;
  uint64_t session_hash() const;  // 0: nothing
  // The name; its own name, where it is of no conversation.
  std::string_view sticky_name() const {
    const std::string_view session = session_name();
    return session.empty() ? std::string_view(ask.request_id) : session;
  }
  // By which its share of what is split is found: of no conversation, a retry has the same body.
  uint64_t share_hash() const;
  uint64_t share();  // likewise, and kept: not while it stands in a queue, which reads it
  // The canary that has it is of the deployment itself: a version of its adapter, or a revision.
  bool is_at_home() const { return asked && asked->deployment->name == at.route.deployment->name; }
  // What it may take of limits of a day where it is.
  admission::DayAsk day_ask() const {
    return day_ask_of(request, *ask.endpoint, *at.route.deployment, at.wanted.estimate);
  }
  // The client and its tenant decide: the one by its header, the other for all of its requests.
  bool may_degrade() const { return ask.may_degrade && !caller().tenant->degrade_never; }
  // Whether its prompt may lose turns.
  bool trims() const { return is_cut || (at.route.deployment->trims && may_degrade()); }
  bool has_ladder() const {
    return descent || (!named().deployment->ladders.empty() && may_degrade());
  }
  // As it is sent; null: it is not large. That of an answer that goes on is with what was kept of
  // it.
  upstream::SharedBody large_body() const {
    if (large) return LargeBody::bytes_of(large);
    return delivered ? delivered->body() : nullptr;
  }
  // Another replica may go on with its answer where it breaks, if its replica's answer allows it.
  bool may_resume() const {
    const routing::DeploymentRoute& deployment = *at.route.deployment;
    return request.form == openai::AnswerForm::kStream && deployment.limits.resume &&
           !deployment.managed;
  }
  // How often its answer went on at another replica.
  unsigned resumes() const {
    return settlement.record.resumption ? settlement.record.resumption->resumed : 0;
  }
  // Its answer broke, and is to go on at another replica.
  bool pauses() const {
    return settlement.record.resumption && settlement.record.resumption->pauses;
  }
  // These groups' events are written to its client.
  void note_delivered(const upstream::TokenGroupsView& groups) {
    if (delivered && !delivered->note(groups)) forget_delivered();
  }
  // Its client has something of the answer.
  bool has_answered() const { return settlement.record.events > 0 || settlement.record.bytes > 0; }
  // It runs on, and could go on nowhere else: there is no room for what that takes.
  void forget_delivered() {
    delivered.reset();
    parts.metrics.resume_no_room.add();
  }
  // Of its answer, as far as its replica has said so.
  void note_tokens(const upstream::Usage& seen);

  const ThreadParts& parts;
  Ask& ask;  // of which the settlement has views, as it has of the next three
  const base::TraceContext trace;
  const base::TraceParent trace_parent;  // of its own span
  std::unique_ptr<CanarySeat> canary;    // null: it is of none
  Settlement settlement;
  std::shared_ptr<LargeBody> large;  // the body, where it is large: then ask has none
  std::shared_ptr<BodyJob> job;      // what is done with it at the side
  openai::Request request;
  Destination at;
  std::optional<routing::Route> asked;  // what it was resolved to, where a canary has it
  std::unique_ptr<Descent> descent;     // null: it has taken no rung
  bool is_cut = false;                  // it has taken the rung that trims
  std::vector<Departure> left;          // in their order
  base::SteadyTime admitted;            // when admission began
  base::SteadyTime waits_from;          // since when it waits for a place
  base::SteadyTime sent;                // when the request first went to a replica
  size_t body_bytes = 0;                // of the request
  std::shared_ptr<WakeUp> waker;        // null: it never had to wait
  Opening opening;
  Keyed key;
  Danger danger;
  runtime::TimerWheel::Timer queue_deadline;
  std::unique_ptr<ProgramRoute, EndRoute> program;  // null: none was asked

  // What each event of a stream looks at lies together.
  runtime::TimerWheel::Timer heartbeat;
  runtime::TimerWheel::Timer deadline;  // of the first event, then of silence
  Reply& reply;
  Delivery delivery;
  std::unique_ptr<ShadowSample> shadow;        // null: it is not repeated
  std::unique_ptr<DeliveredTokens> delivered;  // null: it could go on nowhere else
  Attempts attempts;
};

}  // namespace penstock::proxy
