// The routes this gateway believes in. One RouteTable for the process, owned by main; replace() is
// called only by the subscription, read() through one RouteReader for each I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/published.h"
#include "routing/adapter_versions.h"
#include "routing/route_snapshot.h"

namespace penstock::routing {

// Where a request goes. Keeps what it says alive however often the table is replaced.
struct Route {
  std::shared_ptr<const DeploymentRoute> deployment;
  SharedVersion version = nullptr;  // of the adapter; null: the base model

  // "pirate@1"; empty: the base model.
  std::string_view adapter() const { return version ? std::string_view(version->name) : ""; }
  // Of the adapter's content; empty: the base model, or not known.
  std::string_view digest() const { return version ? std::string_view(version->digest) : ""; }
};

// Why the route's deployment cannot answer at `endpoint`, as its replicas say: kUnsupportedEndpoint
// that names what it serves. Nothing where it can, or where nobody knows.
base::MaybeError refuses(const Route& route, std::string_view endpoint);

// A name that clients may use. What it refers to is valid as long as the Routes.
struct ModelName {
  std::string name;  // "deployment", "deployment:alias" or "deployment:name@version"
  const DeploymentRoute* deployment;
  const AdapterVersion* version = nullptr;  // null: the base model; of a split, the largest share's
  const AdapterAlias* alias = nullptr;      // null: it is none
};

// The hash by which whoever asks has a share of what is split. Asked for only where something is;
// empty: it is 0.
using ShareHash = std::function<std::uint64_t()>;

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
  // Whether what this key has under way is to end.
  bool is_ended(std::string_view key_id) const { return ended_keys_.contains(key_id); }
  // host:port of who compares shadows' answers; empty: nobody does.
  const std::string& comparer() const { return comparer_; }
  // Which accelerators the agent of that machine reports as lost; empty: none.
  std::string_view lost_accelerators(std::string_view node) const;
  // Replicas in the routes, of all deployments.
  std::size_t replicas() const { return replicas_; }

  // "deployment", "deployment:alias" or "deployment:name@version"; empty: the deployment, where
  // there is but one. Of an alias that versions share, `share` decides: one hash, one version.
  // Unknown: kModelNotFound that names what exists; an alias whose version is not listed, or fits
  // another family: kAdapterUnknown; with no snapshot at all: kNoRoutes.
  base::Result<Route> resolve(std::string_view model, const ShareHash& share = {}) const;

  // Likewise, whoever asks: what the name stands for.
  base::Result<ModelName> describe(std::string_view model) const;

  // Every name that can answer now or soon: deployments, each followed by its aliases; then, of
  // each, the versions of its family, kVersionsNamed in all. Deployments scaled to zero and failed
  // ones resolve and are not named.
  using EachName = std::function<void(const ModelName&)>;
  void each_name(const EachName& each) const;
  static constexpr std::size_t kVersionsNamed = 10'000;

 private:
  struct Named {
    const std::shared_ptr<const DeploymentRoute>* deployment;
    const AdapterAlias* alias = nullptr;      // null: it is none
    const SharedVersion* versions = nullptr;  // one for each share; null: the base model
  };

  void index();
  void add_alias(const std::shared_ptr<const DeploymentRoute>& deployment,
                 const AdapterAlias& alias);
  SharedVersion version_of(const std::string& name, const DeploymentRoute& deployment) const;
  void list_names();
  // The deployment and its aliases.
  void each_alias(const DeploymentRoute& deployment, const EachName& each) const;
  // The versions that fit it, the first of them at most `most`; how many there were.
  std::size_t each_version(const DeploymentRoute& deployment, std::size_t most,
                           const EachName& each) const;
  std::string names_like(std::string_view model) const;
  // What the name stands for; nothing: there is no such name.
  std::optional<Named> find(std::string_view model) const;
  std::optional<Named> find_version(std::string_view model) const;
  base::Error unknown_model(std::string_view model) const;
  base::Error missing_model() const;

  std::uint64_t version_ = 0;
  bool known_ = false;
  Deployments deployments_;
  AdapterVersions versions_;
  std::size_t replicas_ = 0;
  std::set<std::string, std::less<>> ended_keys_;
  std::string comparer_;
  std::vector<LostAccelerators> lost_accelerators_;
  std::vector<std::string> joined_;      // "deployment:alias", which the index refers to
  std::vector<SharedVersion> of_alias_;  // one for each share of each alias; null: not to be used
  std::unordered_map<std::string_view, Named> by_name_;
  std::string names_text_;  // as errors list them
};

class RouteTable : public base::Published<Routes> {
 public:
  RouteTable() : Published(std::make_shared<const Routes>()) {}

  // Swaps the whole set. One thread at a time.
  void replace(const RouteSnapshot& snapshot) { publish(std::make_shared<const Routes>(snapshot)); }
};
using RouteReader = RouteTable::Reader;

}  // namespace penstock::routing
