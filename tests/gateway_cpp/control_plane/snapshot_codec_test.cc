#include "control_plane/snapshot_codec.h"

#include <gtest/gtest.h>

#include "fake_head.h"

namespace penstock::control_plane {
namespace {

TEST(SnapshotCodec, KeepsEveryFieldThatRoutingKnows) {
  penstock::v1::RouteSnapshot wire = snapshot_of(9, "mini");
  auto& limits = *wire.mutable_deployments(0)->mutable_limits();
  limits.set_max_ongoing(3);
  limits.set_max_queued(4);
  limits.set_queue_deadline_ms(5);
  limits.set_first_event_deadline_ms(6);
  wire.mutable_deployments(0)->set_generation(7);
  wire.mutable_deployments(0)->set_uid("uid-1");
  wire.mutable_deployments(0)->set_availability(penstock::v1::AVAILABILITY_LOADING);
  wire.mutable_deployments(0)->set_availability_detail("it starts");
  wire.mutable_deployments(0)->set_expected_ready_at_ms(8);
  wire.mutable_deployments(0)->add_endpoints("/v1/completions");
  wire.mutable_replicas(0)->set_deployment_uid("uid-1");
  const routing::RouteSnapshot expected{
      .version = 9,
      .deployments = {{.name = "mini",
                       .model = "weights/mini",
                       .created = 1700000000,
                       .max_model_len = 2048,
                       .adapters = {{"pirate", "pirate@1"}},
                       .limits = {.max_ongoing = 3,
                                  .max_queued = 4,
                                  .queue_deadline = std::chrono::milliseconds(5),
                                  .first_event_deadline = std::chrono::milliseconds(6)},
                       .generation = 7,
                       .uid = "uid-1",
                       .availability = base::Availability::kLoading,
                       .availability_detail = "it starts",
                       .expected_ready_at = base::WallTime(std::chrono::milliseconds(8)),
                       .endpoints = {"/v1/completions"}}},
      .replicas = {{.id = {"mini-1"},
                    .deployment = "mini",
                    .address = "127.0.0.1:1",
                    .state = routing::ReplicaState::kReady,
                    .capacity = 4,
                    .adapters = {"pirate@1"},
                    .deployment_uid = "uid-1"}}};
  EXPECT_EQ(from_proto(wire), expected);
}

TEST(SnapshotCodec, OnlyAReplicaSaidToBeReadyIsReady) {
  penstock::v1::RouteSnapshot wire = snapshot_of(1, "mini");
  const auto state_of = [&wire](int state) {
    wire.mutable_replicas(0)->set_state(static_cast<penstock::v1::ReplicaState>(state));
    return from_proto(wire).replicas[0].state;
  };
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_READY), routing::ReplicaState::kReady);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_DRAINING), routing::ReplicaState::kDraining);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_STARTING), routing::ReplicaState::kStarting);
  EXPECT_EQ(state_of(penstock::v1::REPLICA_STATE_UNSPECIFIED), routing::ReplicaState::kStarting);
  EXPECT_EQ(state_of(77), routing::ReplicaState::kStarting);
}

}  // namespace
}  // namespace penstock::control_plane
