// One request's state on its way through the phases. On its I/O thread, in its flow's frame.
#pragma once

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
#include "dispatch/dispatcher.h"
#include "openai/request.h"
#include "proxy/account.h"
#include "proxy/attempt.h"
#include "proxy/body_job.h"
#include "proxy/delivery.h"
#include "proxy/destination.h"
#include "proxy/failover.h"
#include "proxy/reply.h"
#include "proxy/request_flow.h"
#include "proxy/settle.h"
#include "proxy/shadow_sample.h"
#include "proxy/wake_up.h"
#include "routing/route_table.h"
#include "runtime/timer_wheel.h"
#include "upstream/call.h"

namespace penstock::proxy {

// A request on its way down the ladder of the deployment that it asked for.
struct RequestFlow::Descent {
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

// Destroyed in reverse order: the call is cancelled before the timers go, and the settlement, which
// counts it, comes last, with what it still looks at.
struct RequestFlow::Exchange {
  // `trace_id` lives longer than this.
  Exchange(const Parts& parts, Ask&& asked, std::string_view trace_id, Reply& to)
      : ask(std::move(asked)),
        settlement(parts.clock, parts.log, parts.metrics, parts.state, ask.received),
        at(std::make_shared<Account>(parts.clock, parts.usage, ask.caller)),
        io(parts.io),
        queue_deadline(parts.timers, to.signal()),
        clock(parts.clock),
        heartbeat(parts.timers, to.signal()),
        deadline(parts.timers, to.signal()),
        reply(to),
        delivery(ask.endpoint->dialect) {
    record().request_id = ask.request_id;
    record().client_request_id = ask.client_request_id;
    record().trace_id = trace_id;
    record().path = ask.endpoint->path;
    record().tenant = ask.caller.tenant->id;
    record().key_id = ask.caller.key_id;
    record().client = ask.client;
    opening.news = &to.signal();
    opening.bytes = ask.body.size();
  }
  ~Exchange() {
    if (job) job->leave();
    if (waker) waker->leave();
    if (shadow) end_sample();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  RequestRecord& record() { return settlement.record; }
  // For its turn, where it has to wait for one.
  std::shared_ptr<dispatch::Waker> make_waker() {
    if (!waker) waker = std::make_shared<WakeUp>(io, reply.signal());
    return waker;
  }
  // Why it goes no further.
  Stop stop() const {
    const Stop told = reply.stop();
    return told == Stop::kNo && key.ended ? Stop::kKeyRevoked : told;
  }
  // It has settled: its shadows may begin.
  void end_sample() noexcept;
  void fill(ShadowSample& sample);
  void describe(v1::ShadowAnswer& answer);
  // Only streams of chunks have room for it.
  bool wants_metadata() const {
    return ask.wants_metadata && ask.endpoint->dialect == openai::Dialect::kOpenAi;
  }

  Ask ask;  // of which the settlement has views
  Settlement settlement;
  std::shared_ptr<LargeBody> large;  // the body, where it is large: then ask has none
  std::shared_ptr<BodyJob> job;      // what is done with it at the side
  openai::Request request;
  Destination at;
  std::optional<routing::Route> asked;          // what it was resolved to, where a canary has it
  std::unique_ptr<Descent> descent;             // null: it has taken no rung
  bool is_cut = false;                          // it has taken the rung that trims
  std::vector<Departure> left;                  // in their order
  base::SteadyTime admitted;                    // when admission began
  base::SteadyTime waits_from;                  // since when it waits for a place
  base::SteadyTime sent;                        // when the request first went to a replica
  std::chrono::nanoseconds queue_wait{0};       // for places, before each attempt
  std::chrono::milliseconds estimated_wait{0};  // as it was told then
  size_t body_bytes = 0;                        // of the request
  uint32_t least_prompt = 0;                    // tokens that its prompt has at least
  dispatch::PlaceRequest wanted;                // what its dispatcher decides by
  const runtime::Executor& io;                  // its thread's
  std::shared_ptr<WakeUp> waker;                // null: it never had to wait
  dispatch::Turn turn;
  bool has_turn = false;  // in the queue, or given a place that was not taken yet
  dispatch::Place place;  // for the next attempt
  Failover failover;
  Opening opening;
  Keyed key;
  Failed last;  // what the last attempt failed with
  // Known for a suspect, and for one that was looked at.
  std::optional<admission::Fingerprint> fingerprint;
  bool suspect = false;
  bool guilty = false;  // engines have died of it, for all that is known
  std::optional<base::SteadyTime> waits_since;
  admission::Aboard aboard;
  std::vector<Attempt> past;  // those that are over, in their order
  runtime::TimerWheel::Timer queue_deadline;
  const base::Clock& clock;

  // What each event of a stream looks at lies together.
  runtime::TimerWheel::Timer heartbeat;
  runtime::TimerWheel::Timer deadline;  // of the first event, then of silence
  Reply& reply;
  Delivery delivery;
  std::unique_ptr<ShadowSample> shadow;  // null: it is not repeated
  std::optional<Attempt> attempt;        // the one under way
};

}  // namespace penstock::proxy
