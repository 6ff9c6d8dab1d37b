// The dispatchers of all deployments in the routes. One Dispatchers for the process, owned by main;
// follow() is called only by the subscription, before the routes that it follows are in force, and
// close_left() after that;
// others look them up through a DispatchReader for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/published.h"
#include "dispatch/dispatcher.h"
#include "routing/route_snapshot.h"

namespace penstock::dispatch {

class Dispatchers
    : public base::Published<std::unordered_map<std::string, std::shared_ptr<Dispatcher>>> {
 public:
  using ByUid = Value;

  // place: where this gateway runs. seed: of the choices that policies leave to chance.
  Dispatchers(const base::Clock& clock, routing::GatewayPlace place, std::uint64_t seed);

  // Deployments that stay keep their queues and what is known of their replicas. A replica whose
  // uid is not its deployment's has other weights, and is left out. Those that the snapshot has no
  // more are kept for who still goes by the routes before it.
  void follow(const routing::RouteSnapshot& snapshot);
  // The routes that were followed are in force: nobody finds the others any more, and who waits
  // there is told.
  void close_left();
  // Time goes by for all of them. Called by one thread, about ten times a second.
  void advance();

 private:
  const base::Clock& clock_;
  const routing::GatewayPlace place_;
  std::uint64_t seed_;
  std::shared_ptr<const ByUid> followed_;  // of these, those that stay; the follower's thread only
};

// What a deployment's dispatcher is found by: its uid, or the name where an older head told none.
const std::string& key_of(const routing::DeploymentRoute& route);

class DispatchReader : public Dispatchers::Reader {
 public:
  using Reader::Reader;

  // Null: the deployment has left the routes.
  std::shared_ptr<Dispatcher> of(const routing::DeploymentRoute& route);
};

}  // namespace penstock::dispatch
