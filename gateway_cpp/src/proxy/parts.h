// What a gateway has once, and what each of its I/O threads has once: every list of that stands
// here. All of it outlives whoever is given it.
#pragma once

#include "admission/canary_book.h"
#include "admission/program_book.h"
#include "admission/shadow_book.h"
#include "admission/suspects.h"
#include "admission/tenants.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/metrics.h"
#include "control_plane/program_directory.h"
#include "control_plane/shadow_sink.h"
#include "dispatch/dispatchers.h"
#include "observe/record_store.h"
#include "observe/tracer.h"
#include "openai/request.h"
#include "proxy/settle.h"
#include "routing/route_table.h"
#include "runtime/awaitable.h"
#include "runtime/body_budget.h"
#include "runtime/gateway_state.h"
#include "runtime/side_threads.h"
#include "runtime/timer_wheel.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

class ProgramLinks;

// Built by main; any thread.
struct GatewayParts {
  const base::Clock& clock;
  base::Log& log;
  const base::GatewayConfig& config;
  base::Metrics& all_metrics;
  runtime::GatewayState& state;
  admission::Suspects& suspects;
  const routing::RouteTable& route_table;
  dispatch::Dispatchers& all_dispatchers;
  const admission::TenantTable& tenants;
  admission::UsageBook& usage;
  runtime::BodyBudget& bodies;  // of requests
  runtime::BodyBudget& answers;
  runtime::BodyBudget& resume_bytes;  // of what streams need to go on elsewhere
  runtime::SideThreads& aside;
  admission::ShadowBook& shadow_book;
  runtime::BodyBudget& shadow_bytes;  // of bodies and answers that are kept
  control_plane::ShadowSink& shadow_sink;
  admission::CanaryBook& canaries;
  admission::ProgramBook& program_book;
  const control_plane::ProgramDirectory& program_directory;
  const observe::RecordStore& records;
  const observe::Tracer& tracer;
  observe::RecordSink* record_sink;  // null: nobody reads what was decided
};

// Built by its I/O thread, and used by that one only.
struct ThreadParts : GatewayParts {
  base::MetricsShard& metrics;
  runtime::TimerWheel& timers;
  openai::RequestParser& parser;
  routing::RouteReader& routes;
  dispatch::DispatchReader& dispatchers;
  upstream::Upstream& upstream;
  runtime::Executor io;
  ProgramLinks& programs;  // router programs beside the gateway
  const Settling settling;
};

}  // namespace penstock::proxy
