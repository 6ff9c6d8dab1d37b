#include "dispatch/dispatchers.h"

#include <map>
#include <utility>
#include <vector>

namespace penstock::dispatch {

const std::string& key_of(const routing::DeploymentRoute& route) {
  return route.uid.empty() ? route.name : route.uid;
}

Dispatchers::Dispatchers(const base::Clock& clock, routing::GatewayPlace place, std::uint64_t seed)
    : Published(std::make_shared<const ByUid>()),
      clock_(clock),
      place_(std::move(place)),
      seed_(seed),
      followed_(current()) {}

void Dispatchers::follow(const routing::RouteSnapshot& snapshot) {
  std::map<std::pair<std::string, std::string>, std::vector<routing::ReplicaRoute>> replicas;
  for (const auto& replica : snapshot.replicas) {
    replicas[{replica.deployment, replica.deployment_uid}].push_back(replica);
  }
  const auto known = current();
  auto next = std::make_shared<ByUid>();
  for (const auto& route : snapshot.deployments) {
    const std::string& key = key_of(route);
    const auto found = known->find(key);
    auto dispatcher = found != known->end() ? found->second
                                            : std::make_shared<Dispatcher>(clock_, place_, ++seed_);
    dispatcher->follow(route, replicas[{route.name, route.uid}]);
    next->emplace(key, std::move(dispatcher));
  }
  followed_ = std::make_shared<const ByUid>(*next);
  next->insert(known->begin(), known->end());
  publish(std::move(next));
}

void Dispatchers::close_left() {
  const auto known = current();
  publish(followed_);
  for (const auto& [key, dispatcher] : *known) {
    if (!followed_->contains(key)) dispatcher->close();
  }
}

void Dispatchers::advance() {
  const auto all = current();
  for (const auto& [key, dispatcher] : *all) dispatcher->advance();
}

std::shared_ptr<Dispatcher> DispatchReader::of(const routing::DeploymentRoute& route) {
  const auto& all = *read();
  const auto found = all.find(key_of(route));
  return found == all.end() ? nullptr : found->second;
}

}  // namespace penstock::dispatch
