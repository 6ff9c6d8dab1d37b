// One request from its body to its end, in seven phases: parse, resolve, admit, select, open,
// stream, settle. One RequestFlow for each I/O thread, used by that thread only; it keeps no state
// of a request between calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "openai/request.h"
#include "proxy/gateway_state.h"
#include "proxy/reply.h"
#include "proxy/timer_wheel.h"
#include "routing/route_table.h"
#include "routing/selection_policy.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

// A request as it was read off the wire.
struct Ask {
  std::string request_id;         // ours
  std::string client_request_id;  // the caller's own; empty: none
  std::string traceparent;        // empty: none
  openai::Endpoint endpoint = openai::Endpoint::kChatCompletions;
  std::string_view path;  // of the endpoint, static
  std::string body;
  base::SteadyTime received;  // when the last byte of it had been read
};

class RequestFlow {
 public:
  // Everything that a request meets on its way. All outlive the flow.
  struct Parts {
    const base::Clock& clock;
    base::Log& log;
    const base::GatewayConfig& config;
    base::MetricsShard& metrics;
    GatewayState& state;
    TimerWheel& timers;
    openai::RequestParser& parser;
    routing::RouteReader& routes;
    const routing::SelectionPolicy& policy;
    upstream::Upstream& upstream;
  };

  explicit RequestFlow(const Parts& parts) : parts_(parts) {}
  RequestFlow(const RequestFlow&) = delete;
  RequestFlow& operator=(const RequestFlow&) = delete;

  // Answers the request through `reply`, whatever happens, unless the client leaves.
  Awaitable<void> run(Ask ask, Reply& reply);

 private:
  struct Exchange;
  using Failed = std::optional<base::Error>;

  base::Result<openai::Request> parse(Exchange& x);
  base::Result<routing::Route> resolve(Exchange& x, const openai::Request& request);
  std::optional<base::Error> admit(Exchange& x);
  const routing::Target* select(Exchange& x);
  Awaitable<Failed> open(Exchange& x);
  Awaitable<Failed> first_news(Exchange& x);
  Awaitable<void> deliver(Exchange& x);
  Awaitable<void> stream(Exchange& x);
  Awaitable<void> unary(Exchange& x);
  Awaitable<void> fail(Exchange& x, const base::Error& error);

  void send(Exchange& x, const routing::Target& target);
  void note_failure(Exchange& x, const routing::Target& target);
  AnswerHead head_of(const Exchange& x, unsigned status, std::string_view content_type) const;
  void begin_stream(Exchange& x, std::string_view content_type);
  bool beat(Exchange& x);

  const Parts parts_;
  std::vector<routing::ReplicaView> views_;  // memory for select
};

}  // namespace penstock::proxy
