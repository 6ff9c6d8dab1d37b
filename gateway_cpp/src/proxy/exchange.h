// One request's state on its way through the phases. On its I/O thread, in its flow's frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "admission/suspects.h"
#include "dialects/stream_end.h"
#include "openai/request.h"
#include "proxy/body_job.h"
#include "proxy/failover.h"
#include "proxy/reply.h"
#include "proxy/request_flow.h"
#include "proxy/settle.h"
#include "routing/route_table.h"
#include "runtime/timer_wheel.h"
#include "upstream/call.h"

namespace penstock::proxy {

// Destroyed in reverse order: the call is cancelled before the timers go, and the settlement, which
// counts it, comes last.
struct RequestFlow::Exchange {
  Exchange(const Parts& parts, Ask&& asked, std::string_view trace_id, Reply& to)
      : settlement(parts.clock, parts.log, parts.metrics, parts.state, asked.received),
        ask(std::move(asked)),
        reply(to),
        end(ask.endpoint->dialect),
        heartbeat(parts.timers, to.signal()),
        deadline(parts.timers, to.signal()) {
    record().request_id = ask.request_id;
    record().client_request_id = ask.client_request_id;
    record().trace_id = trace_id;
    record().path = ask.endpoint->path;
    opening.news = &to.signal();
    opening.bytes = ask.body.size();
  }
  ~Exchange() {
    if (job) job->leave();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  RequestRecord& record() { return settlement.record; }

  Settlement settlement;
  Ask ask;
  Reply& reply;
  dialects::StreamEnd end;           // of a stream: what was taken last, and how it breaks
  std::shared_ptr<LargeBody> large;  // the body, where it is large: then ask has none
  std::shared_ptr<BodyJob> job;      // what is done with it at the side
  openai::Request request;
  routing::Route route;
  runtime::TimerWheel::Timer heartbeat;
  runtime::TimerWheel::Timer deadline;  // of the first event, then of silence
  base::SteadyTime last_write;          // the client's last sign of life from us, coarse
  base::SteadyTime last_heard;          // the replica's, coarse
  base::SteadyTime admitted;
  base::SteadyTime sent;                   // when the request first went to a replica
  std::chrono::nanoseconds queue_wait{0};  // admission to that
  Failover failover;
  Opening opening;
  Failed last;                              // what the last replica failed with
  const routing::Target* target = nullptr;  // the last one it was sent to; `route` keeps it
  // Known for a suspect, and for one that was looked at.
  std::optional<admission::Fingerprint> fingerprint;
  bool suspect = false;
  bool must_wait = false;  // a suspect finds no place now, and will
  std::optional<base::SteadyTime> waits_since;
  admission::Aboard aboard;
  bool stream_begun = false;  // the client has a status, and may have comments
  bool whole = false;         // the client has all of a stream: its last event was written
  bool answered = false;      // nothing more may be written
  runtime::Payload payload;
  uint64_t taken = 0;  // bytes of it that came from the replica
  std::unique_ptr<upstream::Call> call;
};

}  // namespace penstock::proxy
