#include "control_plane/snapshot_codec.h"

namespace penstock::control_plane {
namespace {

using std::chrono::milliseconds;

// A state that this gateway does not know may not be sent requests.
routing::ReplicaState state_from(penstock::v1::ReplicaState state) {
  switch (state) {
    case penstock::v1::REPLICA_STATE_READY:
      return routing::ReplicaState::kReady;
    case penstock::v1::REPLICA_STATE_DRAINING:
      return routing::ReplicaState::kDraining;
    default:
      return routing::ReplicaState::kStarting;
  }
}

routing::Limits limits_from(const penstock::v1::Limits& wire) {
  return {.max_ongoing = wire.max_ongoing(),
          .max_queued = wire.max_queued(),
          .queue_deadline = milliseconds(wire.queue_deadline_ms()),
          .first_event_deadline = milliseconds(wire.first_event_deadline_ms())};
}

routing::DeploymentRoute deployment_from(const penstock::v1::DeploymentRoute& wire) {
  routing::DeploymentRoute deployment{.name = wire.name(),
                                      .model = wire.model(),
                                      .created = wire.created(),
                                      .max_model_len = wire.max_model_len(),
                                      .adapters = {},
                                      .limits = limits_from(wire.limits()),
                                      .generation = wire.generation()};
  for (const auto& adapter : wire.adapters()) {
    deployment.adapters.push_back({adapter.alias(), adapter.adapter()});
  }
  return deployment;
}

routing::ReplicaRoute replica_from(const penstock::v1::ReplicaRoute& wire) {
  return {.id = {wire.id()},
          .deployment = wire.deployment(),
          .address = wire.address(),
          .state = state_from(wire.state()),
          .capacity = wire.capacity(),
          .adapters = {wire.adapters().begin(), wire.adapters().end()}};
}

}  // namespace

routing::RouteSnapshot from_proto(const penstock::v1::RouteSnapshot& wire) {
  routing::RouteSnapshot snapshot{.version = wire.version(), .deployments = {}, .replicas = {}};
  for (const auto& deployment : wire.deployments()) {
    snapshot.deployments.push_back(deployment_from(deployment));
  }
  for (const auto& replica : wire.replicas()) {
    snapshot.replicas.push_back(replica_from(replica));
  }
  return snapshot;
}

}  // namespace penstock::control_plane
