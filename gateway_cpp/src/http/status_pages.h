// What the gateway tells of itself: live, started, ready, its version, metrics, the models. One for
// each I/O thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "admission/tenants.h"
#include "base/error.h"
#include "dispatch/dispatchers.h"
#include "http/parts.h"
#include "routing/route_table.h"

namespace penstock::http {

struct PageText {
  unsigned status = 200;
  std::string_view content_type;
  std::string body;
};

class StatusPages {
 public:
  // All outlive the pages.
  StatusPages(const proxy::GatewayParts& parts, routing::RouteReader& routes,
              dispatch::DispatchReader& dispatchers, Subscription subscription,
              DeepLook look_deeply)
      : parts_(parts),
        routes_(routes),
        dispatchers_(dispatchers),
        subscription_(std::move(subscription)),
        look_deeply_(std::move(look_deeply)) {}

  PageText live() const;
  // The same as platforms ask for it, who start anew what is not: also while nothing is loaded yet,
  // or the gateway drains. 503 where an accelerator of its machine is lost, which a start may mend.
  PageText ping() const;
  // 503 with a reason while draining, without routes, and when no replica can be sent anything. The
  // control plane's absence is told, and no reason.
  PageText ready() const;
  // Whether there were ever routes to serve by.
  PageText started() const;
  // As vLLM tells it: nothing but the status; why it is not well is told as by ready().
  PageText health() const;
  // Whether every deployment is well: how many replicas it has, to how many of them this gateway
  // would send, and what they last answered to a deep check. 503 also when one deployment has
  // none, unless nobody wants any, or all of one fail it. Of deployments that the viewer may use;
  // null, a stranger: of all together, and of none by name.
  PageText deep_health(const admission::Tenant* viewer) const;
  PageText version() const;
  // In the format that `accept`, of whoever asks, likes best.
  PageText metrics(std::string_view accept) const;
  // What the tenant may use.
  PageText models(const admission::Tenant& tenant) const;
  base::Result<PageText> model(const admission::Tenant& tenant, std::string_view id) const;
  // What the caller's key and its tenant have had today, and what they are held to.
  PageText usage(const admission::Caller& caller) const;

 private:
  struct NotReady {
    std::string_view reason;
    std::string_view message;
  };
  std::optional<NotReady> why_not_ready(const routing::Routes& routes) const;
  std::string routes_members(const routing::Routes& routes) const;

  const proxy::GatewayParts& parts_;
  routing::RouteReader& routes_;
  dispatch::DispatchReader& dispatchers_;
  const Subscription subscription_;
  const DeepLook look_deeply_;
};

}  // namespace penstock::http
