#include "routing/route_table.h"

#include <algorithm>

namespace penstock::routing {
namespace {

// How many names an error lists before it says "and N more".
constexpr std::size_t kNamesShown = 20;

bool can_come(const DeploymentRoute& deployment) {
  return deployment.availability != base::Availability::kScaledToZero &&
         deployment.availability != base::Availability::kFailed;
}

}  // namespace

Routes::Routes(const RouteSnapshot& snapshot)
    : version_(snapshot.version), known_(true), replicas_(snapshot.replicas.size()) {
  for (const DeploymentRoute& route : snapshot.deployments) {
    deployments_[route.name] = std::make_shared<const DeploymentRoute>(route);
  }
  index();
  list_names();
}

// Deployments first: one may have a colon in its own name.
void Routes::index() {
  std::size_t aliases = 0;
  for (const auto& [name, deployment] : deployments_) aliases += deployment->adapters.size();
  joined_.reserve(aliases);
  by_name_.reserve(deployments_.size() + aliases);
  for (const auto& [name, deployment] : deployments_) by_name_[name] = {&deployment, nullptr};
  for (const auto& [name, deployment] : deployments_) {
    for (const AdapterAlias& adapter : deployment->adapters) {
      joined_.push_back(name + ":" + adapter.alias);
      by_name_.try_emplace(joined_.back(), Named{&deployment, &adapter});
    }
  }
}

void Routes::list_names() {
  for (const auto& [name, deployment] : deployments_) {
    if (!can_come(*deployment)) continue;
    names_.push_back({name, deployment.get(), nullptr});
    for (const AdapterAlias& adapter : deployment->adapters) {
      names_.push_back({name + ":" + adapter.alias, deployment.get(), &adapter});
    }
  }
  for (std::size_t i = 0; i < names_.size() && i < kNamesShown; ++i) {
    if (i > 0) names_text_ += ", ";
    names_text_ += names_[i].name;
  }
  if (names_.size() > kNamesShown) {
    names_text_ += " and " + std::to_string(names_.size() - kNamesShown) + " more";
  }
}

base::Result<Route> Routes::resolve(std::string_view model) const {
  if (!known_) {
    auto error = base::make_error(base::Kind::kNoRoutes,
                                  "this gateway has not heard from its control plane yet; try "
                                  "again in a second");
    error.retry_after = std::chrono::seconds(1);
    return error;
  }
  if (model.empty()) {
    if (deployments_.size() == 1) return Route{deployments_.begin()->second, {}};
    return missing_model();
  }
  const auto found = by_name_.find(model);
  if (found == by_name_.end()) return unknown_model(model);
  const Named& named = found->second;
  return Route{*named.deployment, named.adapter == nullptr ? "" : named.adapter->adapter};
}

base::Error Routes::unknown_model(std::string_view model) const {
  constexpr std::size_t kShown = 200;  // of a hostile name
  std::string message = "The model `" + std::string(model.substr(0, kShown)) + "` does not exist. ";
  message += names_text_.empty() ? "No deployment exists yet." : "These do: " + names_text_ + ".";
  return base::make_error(base::Kind::kModelNotFound, std::move(message), "model");
}

base::Error Routes::missing_model() const {
  std::string message = "'model' is missing. ";
  message +=
      names_text_.empty() ? "No deployment exists yet." : "Name one of these: " + names_text_ + ".";
  return base::make_error(base::Kind::kMissingParameter, std::move(message), "model");
}

std::optional<base::Error> refuses(const Route& route, std::string_view endpoint) {
  const DeploymentRoute& deployment = *route.deployment;
  const auto& served = deployment.endpoints;
  if (served.empty() || std::ranges::find(served, endpoint) != served.end()) return std::nullopt;
  std::string message = "The model `" + deployment.name + "` does not answer at ";
  message.append(endpoint).append(". It serves ");
  for (const std::string& path : served) {
    if (&path != served.data()) message += ", ";
    message += path;
  }
  return base::make_error(base::Kind::kUnsupportedEndpoint, message + ".", "model");
}

RouteTable::RouteTable() : current_(std::make_shared<const Routes>()) {}

void RouteTable::replace(const RouteSnapshot& snapshot) {
  auto routes = std::make_shared<const Routes>(snapshot);
  {
    const std::lock_guard lock(mutex_);
    current_.swap(routes);
  }
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const Routes> RouteTable::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

const std::shared_ptr<const Routes>& RouteReader::read() {
  const std::uint64_t generation = table_.generation();
  if (!routes_ || generation != generation_) {
    routes_ = table_.current();
    generation_ = generation;
  }
  return routes_;
}

}  // namespace penstock::routing
