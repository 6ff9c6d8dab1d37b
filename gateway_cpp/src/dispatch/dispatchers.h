// The dispatchers of all deployments in the routes. One Dispatchers for the process, owned by main;
// follow() is called only by the subscription, before the routes that it follows are in force, and
// close_left() after that;
// others look them up through a DispatchReader for each thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "dispatch/dispatcher.h"
#include "routing/route_snapshot.h"

namespace penstock::dispatch {

class Dispatchers {
 public:
  using ByUid = std::unordered_map<std::string, std::shared_ptr<Dispatcher>>;

  // place: where this gateway runs. seed: of the choices that policies leave to chance.
  Dispatchers(const base::Clock& clock, routing::GatewayPlace place, std::uint64_t seed);
  Dispatchers(const Dispatchers&) = delete;
  Dispatchers& operator=(const Dispatchers&) = delete;

  // Deployments that stay keep their queues and what is known of their replicas. A replica whose
  // uid is not its deployment's has other weights, and is left out. Those that the snapshot has no
  // more are kept for who still goes by the routes before it.
  void follow(const routing::RouteSnapshot& snapshot);
  // The routes that were followed are in force: nobody finds the others any more, and who waits
  // there is told.
  void close_left();
  // Time goes by for all of them. Called by one thread, about ten times a second.
  void advance();

  // Any thread; takes a short lock. On the request path use a DispatchReader.
  std::shared_ptr<const ByUid> current() const;
  // Grows with each follow(). Any thread.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  void publish(std::shared_ptr<const ByUid> next);

  const base::Clock& clock_;
  const routing::GatewayPlace place_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<const ByUid> current_;
  std::shared_ptr<const ByUid> followed_;  // of these, those that stay; the follower's thread only
  std::atomic<std::uint64_t> generation_{0};
};

// What a deployment's dispatcher is found by: its uid, or the name where an older head told none.
const std::string& key_of(const routing::DeploymentRoute& route);

// A thread's own view of them: one atomic load when nothing changed.
class DispatchReader {
 public:
  explicit DispatchReader(const Dispatchers& dispatchers) : dispatchers_(dispatchers) {}

  // Null: the deployment has left the routes.
  std::shared_ptr<Dispatcher> of(const routing::DeploymentRoute& route);
  // The reference holds until the next call on this reader.
  const std::shared_ptr<const Dispatchers::ByUid>& read();

 private:
  const Dispatchers& dispatchers_;
  std::uint64_t generation_ = 0;
  std::shared_ptr<const Dispatchers::ByUid> current_;
};

}  // namespace penstock::dispatch
