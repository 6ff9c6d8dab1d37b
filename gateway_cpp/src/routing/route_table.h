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
#include "routing/route_snapshot.h"

namespace penstock::routing {

// Where a request goes. Keeps the deployment's route alive however often the table is replaced.
struct Route {
  std::shared_ptr<const DeploymentRoute> deployment;
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
  using Deployments = std::map<std::string, std::shared_ptr<const DeploymentRoute>, std::less<>>;

  Routes() = default;  // nothing known yet
  explicit Routes(const RouteSnapshot& snapshot);
  // The index by name refers to what lies in it.
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  // False until a snapshot came, from the head or from disk.
  bool known() const { return known_; }
  std::uint64_t version() const { return version_; }
  const Deployments& deployments() const { return deployments_; }
  // Replicas in the routes, of all deployments.
  std::size_t replicas() const { return replicas_; }

  // "deployment" or "deployment:alias"; empty: the deployment, where there is but one. Unknown:
  // kModelNotFound that names what exists; with no snapshot at all: kNoRoutes.
  base::Result<Route> resolve(std::string_view model) const;

  // Every name that can answer now or soon, in the order of the deployments, each followed by its
  // adapters. Deployments scaled to zero and failed ones resolve and are not named.
  const std::vector<ModelName>& names() const { return names_; }

 private:
  struct Named {
    const std::shared_ptr<const DeploymentRoute>* deployment;
    const AdapterAlias* adapter;  // null: the base model
  };

  void index();
  void list_names();
  base::Error unknown_model(std::string_view model) const;
  base::Error missing_model() const;

  std::uint64_t version_ = 0;
  bool known_ = false;
  Deployments deployments_;
  std::size_t replicas_ = 0;
  std::vector<std::string> joined_;  // "deployment:alias", which the index refers to
  std::unordered_map<std::string_view, Named> by_name_;
  std::vector<ModelName> names_;
  std::string names_text_;  // as errors list them
};

class RouteTable {
 public:
  RouteTable();
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  // Swaps the whole set. One thread at a time.
  void replace(const RouteSnapshot& snapshot);

  // Any thread; takes a short lock. On the request path use a RouteReader.
  std::shared_ptr<const Routes> current() const;

  // Grows with each replace(): a cheap way to ask "anything new?". Any thread.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<const Routes> current_;
  std::atomic<std::uint64_t> generation_{0};
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
