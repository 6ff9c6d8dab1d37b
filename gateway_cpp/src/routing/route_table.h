// The routes this gateway believes in. One RouteTable for the process, owned by main; replace() is
// called only by the subscription, read() through one RouteReader for each I/O thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "routing/replica_tracker.h"
#include "routing/route_snapshot.h"

namespace penstock::routing {

// One replica of a deployment, with this gateway's own knowledge of it.
struct Target {
  ReplicaRoute route;
  std::shared_ptr<ReplicaTracker> tracker;  // never null
};

// One deployment with all its replicas. Immutable apart from the trackers.
struct DeploymentTargets {
  DeploymentRoute route;
  std::vector<Target> replicas;

  // How many replicas are in that state; ready ones count even when they are down-marked.
  std::uint32_t count(ReplicaState state) const;
  // How many ready replicas may be given one more call under limits.max_ongoing.
  std::uint32_t with_room() const;
};

// Where a request goes. Keeps the deployment alive however often the table is replaced.
struct Route {
  std::shared_ptr<const DeploymentTargets> deployment;
  std::string adapter;  // "pirate@1"; empty: the base model
};

// Why the route's deployment cannot answer at `endpoint`, as its replicas say: kUnsupportedEndpoint
// that names what it serves. Nothing where it can, or where nobody knows.
std::optional<base::Error> refuses(const Route& route, std::string_view endpoint);

// A name that clients may use.
struct ModelName {
  std::string name;                       // "deployment" or "deployment:alias"
  const DeploymentRoute* deployment;      // valid as long as the Routes
  const AdapterAlias* adapter = nullptr;  // null: the base model
};

// One whole set of routes. Immutable: threads share it without locks.
class Routes {
 public:
  using Deployments = std::map<std::string, std::shared_ptr<const DeploymentTargets>, std::less<>>;

  Routes() = default;  // nothing known yet
  Routes(std::uint64_t version, Deployments deployments)
      : version_(version), known_(true), deployments_(std::move(deployments)) {}

  // False until a snapshot came, from the head or from disk.
  bool known() const { return known_; }
  std::uint64_t version() const { return version_; }
  const Deployments& deployments() const { return deployments_; }

  // "deployment" or "deployment:alias"; empty: the deployment, where there is but one. Unknown:
  // kModelNotFound that names what exists; with no snapshot at all: kNoRoutes.
  base::Result<Route> resolve(std::string_view model) const;

  // Every name that can answer now or soon, in the order of the deployments, each followed by its
  // adapters. Deployments scaled to zero and failed ones resolve and are not named.
  std::vector<ModelName> names() const;

 private:
  base::Result<Route> find(std::string_view model) const;
  base::Error unknown_model(std::string_view model) const;
  base::Error missing_model() const;
  std::string names_text() const;

  std::uint64_t version_ = 0;
  bool known_ = false;
  Deployments deployments_;
};

class RouteTable {
 public:
  RouteTable();
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  // Swaps the whole set. Replicas that keep id and address keep their tracker; a replica whose
  // uid is not its deployment's is left out. One thread at a time.
  void replace(const RouteSnapshot& snapshot);

  // Any thread; takes a short lock. On the request path use a RouteReader.
  std::shared_ptr<const Routes> current() const;

  // Grows with each replace(): a cheap way to ask "anything new?". Any thread.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<ReplicaTracker> tracker_for(const ReplicaRoute& replica) const;

  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<const Routes> current_;
  std::atomic<std::uint64_t> generation_{0};
  // By id and address: a replica that came back elsewhere starts without doubts. Only replace()
  // touches it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ReplicaTracker>> trackers_;
};

// A thread's own view of the table: one atomic load when nothing changed. One for each I/O thread.
class RouteReader {
 public:
  explicit RouteReader(const RouteTable& table) : table_(table) {}

  // The reference holds until the next read() on this reader: copy it across suspension points.
  const std::shared_ptr<const Routes>& read();

 private:
  const RouteTable& table_;
  std::uint64_t generation_ = 0;
  std::shared_ptr<const Routes> routes_;
};

}  // namespace penstock::routing
