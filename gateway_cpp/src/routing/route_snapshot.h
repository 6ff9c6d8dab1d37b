// The route snapshot: a whole, versioned map from deployments to replicas. Immutable values with no
// knowledge of the wire; control_plane makes them from protobuf.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/availability.h"
#include "base/clock.h"

namespace penstock::routing {

struct ReplicaId {
  std::string value;
  auto operator<=>(const ReplicaId&) const = default;
};

// A movable name for an immutable adapter version.
struct AdapterAlias {
  std::string alias;    // "pirate"
  std::string adapter;  // "pirate@1"
  bool operator==(const AdapterAlias&) const = default;
};

// Zero: no limit.
struct Limits {
  std::uint32_t max_ongoing = 0;  // calls sent to one replica at a time
  std::uint32_t max_queued = 0;   // requests waiting in one gateway
  std::chrono::milliseconds queue_deadline{0};
  std::chrono::milliseconds first_event_deadline{0};
  bool operator==(const Limits&) const = default;
};

struct DeploymentRoute {
  std::string name;                 // "model" in requests
  std::string model;                // what the engine loaded
  std::int64_t created = 0;         // seconds since 1970
  std::uint32_t max_model_len = 0;  // tokens; 0: not known
  std::vector<AdapterAlias> adapters;
  Limits limits;
  std::uint64_t generation = 0;  // grows with each change of its spec
  std::string uid = {};          // tells namesakes apart; empty: an older head
  base::Availability availability = base::Availability::kUnknown;
  std::string availability_detail = {};     // for a person: why it cannot answer
  base::WallTime expected_ready_at = {};    // where it is loading; the epoch: not known
  std::vector<std::string> endpoints = {};  // paths that it serves; empty: not known
  bool operator==(const DeploymentRoute&) const = default;
};

enum class ReplicaState : std::uint8_t { kStarting, kReady, kDraining };

struct ReplicaRoute {
  ReplicaId id;
  std::string deployment;
  std::string address;  // host:port of its Inference service
  ReplicaState state = ReplicaState::kStarting;
  std::uint32_t capacity = 0;         // calls it runs at once; 0: not known
  std::vector<std::string> adapters;  // loaded, "name@version"
  std::string deployment_uid = {};    // nothing is sent to a replica of another uid
  bool operator==(const ReplicaRoute&) const = default;
};

struct RouteSnapshot {
  std::uint64_t version = 0;
  std::vector<DeploymentRoute> deployments;
  std::vector<ReplicaRoute> replicas;
  bool operator==(const RouteSnapshot&) const = default;
};

}  // namespace penstock::routing
