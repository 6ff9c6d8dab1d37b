"""Messages of common.proto and nodes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.fleet.replica import (
    Device,
    FailedAdapter,
    KeptAdapter,
    NodeFacts,
    NodeId,
    NodeIntent,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.stamp import Stamp
from penstock.v1 import common_pb2, inference_pb2, nodes_pb2

_PHASES: Mapping[int, ReplicaState] = {
    nodes_pb2.REPLICA_PHASE_STARTING: ReplicaState.STARTING,
    nodes_pb2.REPLICA_PHASE_READY: ReplicaState.READY,
    nodes_pb2.REPLICA_PHASE_DRAINING: ReplicaState.DRAINING,
    nodes_pb2.REPLICA_PHASE_BACKOFF: ReplicaState.BACKOFF,
    nodes_pb2.REPLICA_PHASE_FAILED: ReplicaState.FAILED,
    nodes_pb2.REPLICA_PHASE_STOPPED: ReplicaState.STOPPED,
}
_INTENTS: Mapping[int, NodeIntent] = {
    nodes_pb2.NODE_INTENT_HANDING_OVER: NodeIntent.HANDING_OVER,
    nodes_pb2.NODE_INTENT_LEAVING: NodeIntent.LEAVING,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(message: common_pb2.ClusterStamp) -> Stamp:
    """Whose message it is."""
    return Stamp(message.cluster_id, message.epoch, message.revision)


def cluster_stamp(value: Stamp) -> common_pb2.ClusterStamp:
    """The inverse of `stamp`."""
    return common_pb2.ClusterStamp(
        cluster_id=value.cluster_id, epoch=value.epoch, revision=value.revision
    )


def milliseconds(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def moment(milliseconds_since_1970: int) -> datetime:
    """The inverse of `milliseconds`; raises OverflowError for times outside the calendar."""
    return _EPOCH + timedelta(milliseconds=milliseconds_since_1970)


def replica_status(message: nodes_pb2.ReplicaStatus) -> ReplicaStatus:
    """An agent's report on one replica; a phase that this version does not know is starting."""
    return ReplicaStatus(
        replica_id=ReplicaId(message.replica_id),
        deployment=DeploymentName(message.deployment),
        deployment_uid=message.deployment_uid,
        template_digest=message.template_digest,
        generation=message.revision,
        state=_PHASES.get(message.phase, ReplicaState.STARTING),
        address=message.address,
        pid=message.pid,
        restarts=message.restarts,
        exit_code=message.exit_code,
        last_error=message.last_error,
        started_at_ms=message.started_at_ms,
        next_start_ms=message.next_start_ms,
        log_path=message.log_path,
        max_model_len=message.max_model_len,
        capacity=message.capacity,
        endpoints=tuple(message.endpoints),
        adapters=tuple(message.adapters),
        adapter_digests=tuple(message.adapter_digests),
        failed_adapters=tuple(
            FailedAdapter(each.name, each.digest, each.reason) for each in message.failed_adapters
        ),
        adapter_slots=message.adapter_slots,
        max_adapter_rank=message.max_adapter_rank,
        devices=tuple(message.devices),
        ready_at_ms=message.ready_at_ms,
        own_token=message.own_token,
    )


def node_facts(message: nodes_pb2.NodeInfo) -> NodeFacts:
    """What an agent says of itself."""
    return NodeFacts(
        id=NodeId(message.node_id),
        agent_address=message.agent_address,
        host=message.host,
        zone=message.zone,
        pid=message.pid,
        resources=resources(message.resources),
        allows_model_code=message.allows_model_code,
        instance=message.instance,
    )


def resources(message: nodes_pb2.NodeResources) -> Resources:
    """What a machine has."""
    return Resources(
        cpus=message.cpus,
        memory_bytes=message.memory_bytes,
        memory_available_bytes=message.memory_available_bytes,
        gpus=message.gpus,
        devices=tuple(
            Device(d.uuid, d.name, d.memory_bytes, d.memory_used_bytes) for d in message.devices
        ),
    )


def node_intent(value: int) -> NodeIntent:
    """What an agent is about to do; one that this version does not know is serving."""
    return _INTENTS.get(value, NodeIntent.SERVING)


def replica_spec(order: ReplicaOrder) -> nodes_pb2.ReplicaSpec:
    """An order as the agent reads it."""
    return nodes_pb2.ReplicaSpec(
        replica_id=order.replica_id,
        deployment=order.deployment,
        revision=order.generation,
        deployment_uid=order.deployment_uid,
        template_digest=order.template_digest,
        engine=order.engine,
        model=order.model,
        served_name=order.deployment,
        engine_args=[f"{key}={value}" for key, value in order.engine_args],
        adapters=map(adapter, order.adapters),
        devices=order.devices,
        start_limit_ms=order.start_limit_ms,
        max_adapters=order.max_adapters,
        max_adapter_rank=order.max_adapter_rank,
    )


def keep_adapters(
    kept: Sequence[KeptAdapter], dropped: Sequence[str]
) -> inference_pb2.KeepAdapters:
    """What a replica is to hold."""
    return inference_pb2.KeepAdapters(adapters=map(adapter, kept), dropped=dropped)


def adapter(kept: KeptAdapter) -> inference_pb2.Adapter:
    """One that a replica is to hold."""
    return inference_pb2.Adapter(
        name=kept.name, source=kept.source, digest=kept.digest, pinned=kept.pinned
    )
