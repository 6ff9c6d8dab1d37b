#include "routing/route_table.h"

#include <algorithm>

namespace penstock::routing {
namespace {

// How many names an error lists before it says "and N more".
constexpr std::size_t kNamesShown = 20;

bool has_room(const DeploymentRoute& deployment, const ReplicaTracker& tracker) {
  const std::uint32_t most = deployment.limits.max_ongoing;
  return most == 0 || tracker.in_flight() < most;
}

bool can_come(const DeploymentRoute& deployment) {
  return deployment.availability != base::Availability::kScaledToZero &&
         deployment.availability != base::Availability::kFailed;
}

// By the routes, and by its own word.
bool is_ready(const Target& target) {
  return target.route.state == ReplicaState::kReady && target.tracker->is_serving();
}

}  // namespace

std::uint32_t DeploymentTargets::count(ReplicaState state) const {
  return static_cast<std::uint32_t>(
      std::count_if(replicas.begin(), replicas.end(), [state](const Target& target) {
        return state == ReplicaState::kReady ? is_ready(target) : target.route.state == state;
      }));
}

std::uint32_t DeploymentTargets::with_room() const {
  return static_cast<std::uint32_t>(
      std::count_if(replicas.begin(), replicas.end(), [this](const Target& target) {
        return is_ready(target) && has_room(route, *target.tracker);
      }));
}

base::Result<Route> Routes::resolve(std::string_view model) const {
  if (!known_) {
    auto error = base::make_error(base::Kind::kNoRoutes,
                                  "this gateway has not heard from its control plane yet; try "
                                  "again in a second");
    error.retry_after = std::chrono::seconds(1);
    return error;
  }
  if (!model.empty()) return find(model);
  if (deployments_.size() == 1) return Route{deployments_.begin()->second, {}};
  return missing_model();
}

base::Result<Route> Routes::find(std::string_view model) const {
  // The whole name first: a deployment may have a colon in its own.
  if (const auto exact = deployments_.find(model); exact != deployments_.end()) {
    return Route{exact->second, {}};
  }
  const std::size_t colon = model.rfind(':');
  if (colon == std::string_view::npos) return unknown_model(model);
  const auto found = deployments_.find(model.substr(0, colon));
  if (found == deployments_.end()) return unknown_model(model);
  for (const AdapterAlias& adapter : found->second->route.adapters) {
    if (adapter.alias == model.substr(colon + 1)) return Route{found->second, adapter.adapter};
  }
  return unknown_model(model);
}

std::vector<ModelName> Routes::names() const {
  std::vector<ModelName> names;
  for (const auto& [name, targets] : deployments_) {
    if (!can_come(targets->route)) continue;
    names.push_back({name, &targets->route, nullptr});
    for (const AdapterAlias& adapter : targets->route.adapters) {
      names.push_back({name + ":" + adapter.alias, &targets->route, &adapter});
    }
  }
  return names;
}

base::Error Routes::unknown_model(std::string_view model) const {
  constexpr std::size_t kShown = 200;  // of a hostile name
  std::string message = "The model `" + std::string(model.substr(0, kShown)) + "` does not exist. ";
  const std::string names = names_text();
  message += names.empty() ? "No deployment exists yet." : "These do: " + names + ".";
  return base::make_error(base::Kind::kModelNotFound, std::move(message), "model");
}

base::Error Routes::missing_model() const {
  std::string message = "'model' is missing. ";
  const std::string names = names_text();
  message += names.empty() ? "No deployment exists yet." : "Name one of these: " + names + ".";
  return base::make_error(base::Kind::kMissingParameter, std::move(message), "model");
}

std::string Routes::names_text() const {
  const std::vector<ModelName> known = names();
  std::string text;
  for (std::size_t i = 0; i < known.size() && i < kNamesShown; ++i) {
    if (i > 0) text += ", ";
    text += known[i].name;
  }
  if (known.size() > kNamesShown) {
    text += " and " + std::to_string(known.size() - kNamesShown) + " more";
  }
  return text;
}

std::optional<base::Error> refuses(const Route& route, std::string_view endpoint) {
  const DeploymentRoute& deployment = route.deployment->route;
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

std::shared_ptr<ReplicaTracker> RouteTable::tracker_for(const ReplicaRoute& replica) const {
  const auto known = trackers_.find({replica.id.value, replica.address});
  return known == trackers_.end() ? std::make_shared<ReplicaTracker>() : known->second;
}

void RouteTable::replace(const RouteSnapshot& snapshot) {
  std::map<std::string, std::shared_ptr<DeploymentTargets>, std::less<>> building;
  for (const DeploymentRoute& deployment : snapshot.deployments) {
    auto targets = std::make_shared<DeploymentTargets>();
    targets->route = deployment;
    building[deployment.name] = std::move(targets);
  }
  decltype(trackers_) trackers;
  for (const ReplicaRoute& replica : snapshot.replicas) {
    auto tracker = tracker_for(replica);
    trackers[{replica.id.value, replica.address}] = tracker;
    // A replica of a deployment that no client may name has nothing to do, and one of a namesake
    // has other weights.
    const auto found = building.find(replica.deployment);
    if (found != building.end() && found->second->route.uid == replica.deployment_uid) {
      found->second->replicas.push_back({replica, std::move(tracker)});
    }
  }
  trackers_ = std::move(trackers);
  auto routes = std::make_shared<const Routes>(
      snapshot.version, Routes::Deployments(building.begin(), building.end()));
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
