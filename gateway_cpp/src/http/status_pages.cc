#include "http/status_pages.h"

#include <algorithm>
#include <vector>

#include "base/config.h"
#include "base/json_text.h"
#include "control_plane/deployment_reports.h"
#include "http/metrics_format.h"
#include "http/metrics_page.h"
#include "http/usage_body.h"
#include "openai/models.h"

namespace penstock::http {

namespace {

// What a tenant may use: of an alias that versions share, all of them.
std::optional<base::Error> refuses(const admission::Tenant& tenant,
                                   const routing::ModelName& name) {
  const std::string& deployment = name.deployment->name;
  auto no = tenant.refuses(deployment, name.version == nullptr ? "" : name.version->name);
  if (no || name.alias == nullptr) return no;
  for (const auto& share : name.alias->shares) {
    no = tenant.refuses(deployment, share.adapter);
    if (no) return no;
  }
  return std::nullopt;
}

// An adapter is as old as its version; an alias, which moves, as its deployment.
openai::ModelCard card_of(const routing::ModelName& name) {
  openai::ModelCard card;
  card.id = name.name;
  card.root = name.version != nullptr ? name.version->name : name.deployment->model;
  if (name.version != nullptr) card.parent = name.deployment->name;
  const bool is_version = name.version != nullptr && name.alias == nullptr;
  card.created = is_version ? name.version->created : name.deployment->created;
  card.max_model_len = name.deployment->max_model_len;
  return card;
}

std::string_view name_of(control_plane::RouteSource source) {
  switch (source) {
    case control_plane::RouteSource::kDisk:
      return "disk";
    case control_plane::RouteSource::kControl:
      return "control";
    case control_plane::RouteSource::kNone:
      break;
  }
  return "none";
}

bool any_replica(const dispatch::Dispatchers::ByUid& dispatchers) {
  return std::any_of(dispatchers.begin(), dispatchers.end(),
                     [](const auto& entry) { return entry.second->standing().usable > 0; });
}

// How a deployment without a replica to send to stands. One that is said to serve has lost its
// replicas, and the head does not know it yet.
std::string_view standing_without_replica(base::Availability availability) {
  switch (availability) {
    case base::Availability::kLoading:
      return "loading";
    case base::Availability::kScaledToZero:
      return "scaled_to_zero";
    case base::Availability::kFailed:
      return "failed";
    case base::Availability::kServing:
    case base::Availability::kUnknown:
      break;
  }
  return "no_replica";
}

using control_plane::DeepAnswer;

// A deployment on the deep page.
struct DeepEntry {
  std::string program_fault;  // why its router program is not asked; empty: it is
  const routing::DeploymentRoute& route;
  dispatch::DeploymentStanding standing;
  std::vector<control_plane::DeepTarget> asked;  // its ready replicas, unless a provider answers
  std::vector<DeepAnswer> answers;               // of each

  bool all_fail() const {
    return !answers.empty() && std::ranges::all_of(answers, [](const DeepAnswer& answer) {
      return answer.verdict == DeepAnswer::Verdict::kUnwell;
    });
  }
  // Whether it lets the page be well.
  bool is_well() const {
    const bool serves = standing.usable > 0 && !all_fail();
    return serves || route.availability == base::Availability::kScaledToZero;
  }
  std::string_view status() const {
    if (standing.usable == 0) return standing_without_replica(route.availability);
    return all_fail() ? "unwell" : "serving";
  }
};

DeepEntry entry_of(const routing::DeploymentRoute& route,
                   const std::shared_ptr<dispatch::Dispatcher>& dispatcher,
                   const DeepLook& look_deeply, std::string program_fault) {
  DeepEntry entry{.program_fault = std::move(program_fault),
                  .route = route,
                  .standing = {},
                  .asked = {},
                  .answers = {}};
  if (!dispatcher) return entry;
  entry.standing = dispatcher->standing();
  if (route.managed) return entry;
  for (const auto& replica : dispatcher->ready_replicas()) {
    entry.asked.push_back({replica->id().value, replica->address(), replica->own_token()});
  }
  entry.answers = look_deeply(entry.asked);
  return entry;
}

int64_t ms(auto duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// One that has not answered yet says no more than that.
void append_check(std::string& body, const std::string& replica, const DeepAnswer& answer,
                  base::SteadyTime now) {
  using Verdict = DeepAnswer::Verdict;
  const bool known = answer.verdict != Verdict::kUnknown;
  body += R"({"replica":)" + base::json_string(replica);
  body += R"(,"ok":)";
  body += !known ? "null" : answer.verdict == Verdict::kWell ? "true" : "false";
  if (known) {
    body += R"(,"latency_ms":)" + std::to_string(ms(answer.took));
    body += R"(,"age_ms":)" + std::to_string(ms(now - answer.at));
  }
  if (!answer.detail.empty()) body += R"(,"detail":)" + base::json_string(answer.detail);
  body += '}';
}

// Without it requests go by power_of_two.
void append_program(std::string& body, const DeepEntry& entry) {
  body += R"(,"program":{"name":)" + base::json_string(entry.route.program->name);
  body += R"(,"asked":)";
  body += entry.program_fault.empty() ? "true" : "false";
  if (!entry.program_fault.empty())
    body += R"(,"detail":)" + base::json_string(entry.program_fault);
  body += '}';
}

// Answers that wait for a place at another replica, where any do.
void append_to_go_on(std::string& body, const dispatch::DeploymentStanding& standing) {
  if (standing.broken + standing.moving == 0) return;
  body += R"(,"to_go_on":{"broken":)" + std::to_string(standing.broken);
  body += R"(,"running":)" + std::to_string(standing.moving) + "}";
}

void append_deployment(std::string& body, const DeepEntry& entry, base::SteadyTime now) {
  if (!body.empty()) body += ',';
  body += R"({"id":)" + base::json_string(entry.route.name);
  body += R"(,"status":)" + base::json_string(entry.status());
  body += R"(,"replicas":)" + std::to_string(entry.standing.replicas);
  body += R"(,"serving":)" + std::to_string(entry.standing.usable);
  append_to_go_on(body, entry.standing);
  if (entry.route.program) append_program(body, entry);
  body += R"(,"checks":[)";
  for (size_t i = 0; i < entry.answers.size(); ++i) {
    if (i > 0) body += ',';
    append_check(body, entry.asked[i].replica_id, entry.answers[i], now);
  }
  body += "]}";
}

}  // namespace

PageText StatusPages::live() const { return {200, base::kJsonType, R"({"status":"live"})"}; }

// A snapshot from the disk is of before the start that was to mend it.
PageText StatusPages::ping() const {
  const std::string& node = parts_.config.node;
  if (node.empty()) return {200, {}, {}};
  const auto routes = routes_.read();
  const auto lost = routes->lost_accelerators(node);
  const bool is_told = subscription_().source == control_plane::RouteSource::kControl;
  if (lost.empty() || !is_told) return {200, {}, {}};
  std::string body = R"({"status":"not_live","reason":"accelerator_lost","message":)";
  body +=
      base::json_string("the driver of " + node + " reaches these no more: " + std::string(lost));
  return {503, base::kJsonType, std::move(body) + "}"};
}

std::optional<StatusPages::NotReady> StatusPages::why_not_ready(
    const routing::Routes& routes) const {
  if (parts_.state.draining.load(std::memory_order_relaxed)) {
    return NotReady{"draining", "this gateway is shutting down"};
  }
  if (!routes.known()) {
    return NotReady{"no_snapshot", "no route snapshot has come from the head, and none is on disk"};
  }
  if (routes.deployments().empty()) return NotReady{"no_route", "there is no deployment"};
  if (!any_replica(*dispatchers_.read())) {
    return NotReady{"no_replica", "no replica of any deployment can be sent requests"};
  }
  return std::nullopt;
}

PageText StatusPages::ready() const {
  const routing::Routes& routes = *routes_.read();
  const auto no = why_not_ready(routes);
  std::string body = R"({"status":)";
  base::append_json_string(body, no ? "not_ready" : "ready");
  if (no) {
    body += R"(,"reason":)" + base::json_string(no->reason);
    body += R"(,"message":)" + base::json_string(no->message);
  }
  body += routes_members(routes) + "}";
  return {no ? 503U : 200U, base::kJsonType, std::move(body)};
}

std::string StatusPages::routes_members(const routing::Routes& routes) const {
  const auto subscription = subscription_();
  std::string members = R"(,"snapshot_version":)" + std::to_string(routes.version());
  members += R"(,"snapshot_source":)" + base::json_string(name_of(subscription.source));
  members += R"(,"control_connected":)";
  return members += subscription.connected ? "true" : "false";
}

PageText StatusPages::started() const {
  if (routes_.read()->known()) return {200, base::kJsonType, R"({"status":"started"})"};
  return {503, base::kJsonType, R"({"status":"not_started","reason":"no_snapshot"})"};
}

PageText StatusPages::health() const {
  PageText page = ready();
  if (page.status == 200) page = {200, {}, {}};
  return page;
}

PageText StatusPages::deep_health(const admission::Tenant* viewer) const {
  const routing::Routes& routes = *routes_.read();
  if (why_not_ready(routes)) return ready();
  std::string deployments;
  bool well = true;
  for (const auto& [name, route] : routes.deployments()) {
    if (viewer != nullptr && viewer->refuses(name, {})) continue;
    const auto entry = entry_of(
        *route, dispatchers_.of(*route), look_deeply_,
        control_plane::why_not_asked(
            *route, {parts_.program_directory, parts_.program_book, parts_.clock.steady_now()}));
    well &= entry.is_well();
    if (viewer != nullptr) append_deployment(deployments, entry, parts_.clock.steady_now());
  }
  std::string body = R"({"status":)" + base::json_string(well ? "well" : "degraded");
  if (viewer != nullptr) body += R"(,"deployments":[)" + deployments + "]";
  body += routes_members(routes) + "}";
  return {well ? 200U : 503U, base::kJsonType, std::move(body)};
}

PageText StatusPages::version() const {
  return {200, base::kJsonType, R"({"version":)" + base::json_string(base::version()) + "}"};
}

PageText StatusPages::metrics(std::string_view accept) const {
  const auto routes = routes_.read();
  GatewayFacts facts{.snapshot_version = routes->version(),
                     .control_connected = subscription_().connected,
                     .draining = parts_.state.draining.load(std::memory_order_relaxed),
                     .request_bytes_held = parts_.bodies.held(),
                     .answer_bytes_held = parts_.answers.held(),
                     .shadow_bytes_held = parts_.shadow_bytes.held(),
                     .resume_bytes_held = parts_.resume_bytes.held(),
                     .tenants = parts_.usage.by_tenant(),
                     .shadows = parts_.shadow_book.rows(),
                     .canaries = parts_.canaries.rows(),
                     .programs = parts_.program_book.rows(parts_.clock.steady_now()),
                     .traces = parts_.tracer.counts(),
                     .explain = parts_.records.totals()};
  for (const auto& [name, route] : routes->deployments()) {
    const auto dispatcher = dispatchers_.of(*route);
    facts.deployments.emplace_back(
        name, dispatcher ? dispatcher->standing() : dispatch::DeploymentStanding{});
  }
  const auto format = metrics_format(accept);
  return {200, content_type(format), metrics_page(parts_.all_metrics, facts, format)};
}

PageText StatusPages::models(const admission::Tenant& tenant) const {
  std::vector<openai::ModelCard> cards;
  routes_.read()->each_name([&](const routing::ModelName& name) {
    if (!refuses(tenant, name)) cards.push_back(card_of(name));
  });
  return {200, base::kJsonType, openai::model_list_body(cards)};
}

base::Result<PageText> StatusPages::model(const admission::Tenant& tenant,
                                          std::string_view id) const {
  const auto name = routes_.read()->describe(id);
  if (!name) return tenant.unresolved(name.error(), id);
  if (auto no = refuses(tenant, *name)) return *no;
  return PageText{200, base::kJsonType, openai::model_body(card_of(*name))};
}

PageText StatusPages::usage(const admission::Caller& caller) const {
  const auto day =
      parts_.usage.day().standing(caller.tenant->id, caller.key_id, parts_.clock.wall_now());
  return {200, base::kJsonType,
          usage_body(caller, day, caller.meter->rate_state(parts_.clock.steady_now()))};
}

}  // namespace penstock::http
