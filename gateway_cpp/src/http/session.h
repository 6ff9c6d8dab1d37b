// One client connection: reads its requests one after the other, hands each to its handler, writes
// the answers. A coroutine on the connection's I/O thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/config.h"
#include "base/metrics.h"
#include "http/connection.h"
#include "http/http_reply.h"
#include "http/request_id.h"
#include "http/request_reader.h"
#include "http/router.h"
#include "http/status_pages.h"
#include "proxy/gateway_state.h"
#include "proxy/request_flow.h"

namespace penstock::http {

// What all sessions of an I/O thread share. All outlive the sessions.
struct Services {
  const base::Clock& clock;
  const base::GatewayConfig& config;
  base::MetricsShard& metrics;
  proxy::GatewayState& state;
  RequestIds& ids;
  StatusPages& pages;
  proxy::RequestFlow& flow;
};

// Whether a client's requests are answered, or refused because the gateway has too many clients.
enum class Welcome : uint8_t { kYes, kNo };

class Session {
 public:
  Session(std::shared_ptr<Connection> connection, Services& services, Welcome welcome);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Awaitable<void> run();

  // The gateway drains: an idle connection ends soon, another after its answer.
  void drain();
  // Ends it now, whatever runs.
  void abort() { connection_->abort(); }

 private:
  Awaitable<KeepAlive> handle(Incoming request);
  Awaitable<void> dispatch(Incoming& request, std::string_view id, HttpReply& reply);
  Awaitable<void> generate(const Found& found, Incoming& request, std::string_view id,
                           HttpReply& reply);
  Awaitable<void> show(PageText page, HttpReply& reply);
  Awaitable<void> refuse(const base::Error& error, HttpReply& reply);
  Awaitable<void> refuse_unread(const base::Error& error);
  Awaitable<void> preflight(const Incoming& request, HttpReply& reply);

  const std::shared_ptr<Connection> connection_;
  Services& services_;
  const Welcome welcome_;
  RequestReader reader_;
};

}  // namespace penstock::http
