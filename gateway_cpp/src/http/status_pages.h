// What the gateway tells of itself: live, started, ready, its version, metrics, the models. One for
// each I/O thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "admission/tenants.h"
#include "admission/usage_book.h"
#include "base/error.h"
#include "base/metrics.h"
#include "control_plane/route_subscription.h"
#include "dispatch/dispatchers.h"
#include "http/shadows.h"
#include "routing/route_table.h"
#include "runtime/body_budget.h"
#include "runtime/gateway_state.h"

namespace penstock::http {

struct PageText {
  unsigned status = 200;
  std::string_view content_type;
  std::string body;
};

class StatusPages {
 public:
  // How the gateway stands to its control plane. Any thread.
  using Subscription = std::function<control_plane::SubscriptionState()>;

  // The budgets whose use the metrics tell.
  struct Budgets {
    const runtime::BodyBudget& requests;
    const runtime::BodyBudget& answers;
  };

  StatusPages(const base::Metrics& metrics, const runtime::GatewayState& state,
              routing::RouteReader& routes, dispatch::DispatchReader& dispatchers,
              const admission::UsageBook& usage, Subscription subscription, const Budgets& budgets,
              const Shadows& shadows);

  PageText live() const;
  // 503 with a reason while draining, without routes, and when no replica can be sent anything. The
  // control plane's absence is told, and no reason.
  PageText ready() const;
  // Whether there were ever routes to serve by.
  PageText started() const;
  // As vLLM tells it: nothing but the status; why it is not well is told as by ready().
  PageText health() const;
  // Whether every deployment is well: how many replicas it has, and to how many of them this
  // gateway would send. 503 also when one deployment has none, unless nobody wants any. Of
  // deployments that the viewer may use; null, a stranger: of all together, and of none by name.
  PageText deep_health(const admission::Tenant* viewer) const;
  PageText version() const;
  PageText metrics() const;
  // What the tenant may use.
  PageText models(const admission::Tenant& tenant) const;
  base::Result<PageText> model(const admission::Tenant& tenant, std::string_view id) const;
  // What the caller's key and its tenant have had today, and what they are held to.
  PageText usage(const admission::Caller& caller, const base::Clock& clock) const;

 private:
  struct NotReady {
    std::string_view reason;
    std::string_view message;
  };
  std::optional<NotReady> why_not_ready(const routing::Routes& routes) const;
  base::DeploymentFacts facts_of(const routing::DeploymentRoute& route) const;
  std::vector<base::ShadowFacts> shadow_facts() const;
  std::string routes_members(const routing::Routes& routes) const;

  const base::Metrics& metrics_;
  const runtime::GatewayState& state_;
  routing::RouteReader& routes_;
  dispatch::DispatchReader& dispatchers_;
  const admission::UsageBook& usage_;
  const Subscription subscription_;
  const Budgets budgets_;
  const Shadows& shadows_;
};

}  // namespace penstock::http
