// The adapter versions that may be named: by name, and by the family of models that they fit. A
// version is kept once, however many deployments are of its family.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "routing/route_snapshot.h"

namespace penstock::routing {

// Shared with the requests that run under it: those end under it when it is listed no more.
using SharedVersion = std::shared_ptr<const AdapterVersion>;

class AdapterVersions {
 public:
  AdapterVersions() = default;
  explicit AdapterVersions(std::span<const AdapterVersion> versions);
  // What finds them refers to what lies in it.
  AdapterVersions(const AdapterVersions&) = delete;
  AdapterVersions& operator=(const AdapterVersions&) = delete;

  bool empty() const { return by_name_.empty(); }
  // The one of that name, if it fits the deployment's model; null: there is none.
  const SharedVersion* find(std::string_view name, const DeploymentRoute& deployment) const;
  // All that fit the deployment's model, by name.
  std::span<const SharedVersion> fitting(const DeploymentRoute& deployment) const;

 private:
  std::unordered_map<std::string_view, SharedVersion> by_name_;
  std::unordered_map<std::string_view, std::vector<SharedVersion>> by_family_;
};

}  // namespace penstock::routing
