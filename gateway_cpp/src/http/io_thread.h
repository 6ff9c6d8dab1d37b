// Everything that one I/O thread owns: its event loop, listener, sessions, replicas' sessions,
// timers. Built and stopped by main; between start() and join() everything inside belongs to the
// thread alone, and other threads only post to it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <thread>

#include "admission/tenants.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "dispatch/dispatchers.h"
#include "http/listener.h"
#include "http/parts.h"
#include "http/request_id.h"
#include "http/session.h"
#include "http/session_group.h"
#include "http/waiting_sessions.h"
#include "openai/request.h"
#include "proxy/program_links.h"
#include "proxy/request_flow.h"
#include "proxy/shadow_copies.h"
#include "proxy/shadow_questions.h"
#include "routing/route_table.h"
#include "runtime/readiness.h"
#include "runtime/send_batch.h"
#include "runtime/ticker.h"
#include "runtime/timer_wheel.h"
#include "upstream/replica_pool.h"

namespace penstock::http {

class IoThread {
 public:
  // `socket`: from listen_on(), owned from now on. `index`: among the gateway's I/O threads.
  IoThread(const PortParts& parts, unsigned index, int socket);
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  ~IoThread();

  void start();
  // No new clients; idle ones leave soon, others after their answer.
  void drain();
  // The drain is over: what has no end yet ends with an error.
  void end_soon();
  // Ends the loop and waits for the thread. Idempotent.
  void join();

 private:
  std::chrono::milliseconds tick();
  void ask(v1::ShadowQuestion question);

  const base::Clock& clock_;
  asio::io_context io_{1};
  runtime::Ticker ticker_{io_, clock_, [this] { return tick(); }};
  dispatch::Dispatchers* const led_;  // null: another thread has time go by for them
  base::SteadyTime next_lead_;
  base::SteadyTime next_sweep_;
  runtime::Readiness readiness_{io_};  // of its clients' sockets
  runtime::TimerWheel timers_;
  runtime::SendBatch sends_{[this] { ticker_.pass(); }};
  base::MetricsShard& metrics_;
  routing::RouteReader routes_;
  dispatch::DispatchReader dispatchers_;
  admission::TenantReader tenants_;
  openai::RequestParser parser_;
  upstream::ReplicaPool pool_;
  proxy::ProgramLinks programs_;
  proxy::RecordPool records_;
  const proxy::ThreadParts parts_;
  RequestIds ids_;
  StatusPages pages_;
  proxy::ShadowCopies shadows_;
  proxy::ShadowQuestions questions_;
  proxy::RequestFlow flow_;
  WaitingSessions waiting_{timers_};
  Services services_;
  SessionGroup sessions_;
  Listener listener_;
  std::thread thread_;
};

}  // namespace penstock::http
