#include "routing/adapter_versions.h"

#include <algorithm>

namespace penstock::routing {

AdapterVersions::AdapterVersions(std::span<const AdapterVersion> versions) {
  by_name_.reserve(versions.size());
  for (const AdapterVersion& version : versions) {
    const auto shared = std::make_shared<const AdapterVersion>(version);
    if (!by_name_.try_emplace(shared->name, shared).second) continue;
    // Where nobody knows what a model is, nothing is known to fit it.
    if (!shared->base_family.empty()) by_family_[shared->base_family].push_back(shared);
  }
  for (auto& [family, fitting] : by_family_) {
    std::ranges::sort(fitting, {}, [](const SharedVersion& version) -> std::string_view {
      return version->name;
    });
  }
}

const SharedVersion* AdapterVersions::find(std::string_view name,
                                           const DeploymentRoute& deployment) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second->base_family.empty() ||
      found->second->base_family != deployment.base_family) {
    return nullptr;
  }
  return &found->second;
}

std::span<const SharedVersion> AdapterVersions::fitting(const DeploymentRoute& deployment) const {
  const auto found = by_family_.find(deployment.base_family);
  if (found == by_family_.end()) return {};
  return found->second;
}

}  // namespace penstock::routing
