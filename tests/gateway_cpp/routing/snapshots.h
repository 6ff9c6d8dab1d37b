// Small route snapshots for tests.
#pragma once

#include <string>
#include <vector>

#include "routing/route_snapshot.h"
#include "routing/route_table.h"

namespace penstock::routing {

inline DeploymentRoute deployment(const std::string& name, std::vector<AdapterAlias> adapters = {},
                                  Limits limits = {}) {
  return {.name = name,
          .model = "weights/" + name,
          .created = 1700000000,
          .max_model_len = 2048,
          .adapters = std::move(adapters),
          .limits = limits,
          .generation = 1};
}

inline ReplicaRoute replica(const std::string& id, const std::string& of,
                            ReplicaState state = ReplicaState::kReady,
                            std::vector<std::string> adapters = {}) {
  return {.id = {id},
          .deployment = of,
          .address = id + ":1",
          .state = state,
          .capacity = 8,
          .adapters = std::move(adapters)};
}

// Every name that clients may use, in order.
inline std::vector<std::string> names_of(const Routes& routes) {
  std::vector<std::string> names;
  routes.each_name([&names](const ModelName& name) { names.push_back(name.name); });
  return names;
}

}  // namespace penstock::routing
