// /metrics, /livez and /readyz on a port of their own, served by a thread of their own: clients
// cannot use it up, and what it renders holds up nobody's stream. Owned by main.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "base/metrics.h"
#include "dispatch/dispatchers.h"
#include "http/listener.h"
#include "http/parts.h"
#include "http/request_id.h"
#include "http/session.h"
#include "http/session_group.h"
#include "http/waiting_sessions.h"
#include "routing/route_table.h"
#include "runtime/readiness.h"
#include "runtime/send_batch.h"
#include "runtime/ticker.h"
#include "runtime/timer_wheel.h"

namespace penstock::http {

class StatusThread {
 public:
  // `socket`: from listen_on(), owned from now on.
  StatusThread(const PortParts& parts, int socket);
  StatusThread(const StatusThread&) = delete;
  StatusThread& operator=(const StatusThread&) = delete;
  // Ends the thread and all its connections.
  ~StatusThread();

 private:
  std::chrono::milliseconds tick();
  void before_clients();

  const base::Clock& clock_;
  asio::io_context io_{1};
  runtime::Ticker ticker_{io_, clock_, [this] { return tick(); }};
  runtime::Readiness readiness_{io_};
  runtime::TimerWheel timers_;
  runtime::SendBatch sends_;
  base::Metrics own_;  // of this port's connections, which are no clients'
  base::MetricsShard& shard_;
  routing::RouteReader routes_;
  dispatch::DispatchReader dispatchers_;
  RequestIds ids_;
  const proxy::GatewayParts parts_;
  StatusPages pages_;
  WaitingSessions waiting_{timers_};
  std::atomic<uint32_t> connections_{0};
  const std::atomic<uint32_t> max_connections_;
  Services services_;
  SessionGroup sessions_;
  Listener listener_;
  std::thread thread_;
};

}  // namespace penstock::http
