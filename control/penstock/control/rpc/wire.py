"""Messages of penstock.v1 to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.cluster import DeploymentCounts, GatewayReport
from penstock.control.state.deployment import DeploymentName
from penstock.control.state.replica import (
    Device,
    NodeFacts,
    NodeId,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
    Resources,
)
from penstock.control.state.snapshot import DeploymentRoute, ReplicaRoute, RouteSnapshot
from penstock.control.state.stamp import Stamp
from penstock.v1 import common_pb2, inference_pb2, nodes_pb2, routes_pb2

_PHASES: Mapping[int, ReplicaState] = {
    nodes_pb2.REPLICA_PHASE_STARTING: ReplicaState.STARTING,
    nodes_pb2.REPLICA_PHASE_READY: ReplicaState.READY,
    nodes_pb2.REPLICA_PHASE_DRAINING: ReplicaState.DRAINING,
    nodes_pb2.REPLICA_PHASE_BACKOFF: ReplicaState.BACKOFF,
    nodes_pb2.REPLICA_PHASE_FAILED: ReplicaState.FAILED,
    nodes_pb2.REPLICA_PHASE_STOPPED: ReplicaState.STOPPED,
}
_ROUTE_STATES = {
    ReplicaState.STARTING: inference_pb2.REPLICA_STATE_STARTING,
    ReplicaState.READY: inference_pb2.REPLICA_STATE_READY,
    ReplicaState.DRAINING: inference_pb2.REPLICA_STATE_DRAINING,
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
        adapters=tuple(message.adapters),
        devices=tuple(message.devices),
        ready_at_ms=message.ready_at_ms,
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
        adapters=[
            inference_pb2.Adapter(name=b.adapter, source=b.source, parent=order.deployment)
            for b in order.adapters
        ],
        devices=order.devices,
        start_limit_ms=order.start_limit_ms,
    )


def gateway_report(message: routes_pb2.GatewayReport) -> GatewayReport:
    """What a gateway counted."""
    counts = tuple(
        DeploymentCounts(
            deployment=d.deployment,
            queued=d.queued,
            in_flight=d.in_flight,
            requests=d.requests,
            succeeded=d.succeeded,
            failed=d.failed,
            rejected=d.rejected,
            cancelled=d.cancelled,
            prompt_tokens=d.prompt_tokens,
            completion_tokens=d.completion_tokens,
            ttft_us_sum=d.ttft_us_sum,
        )
        for d in message.deployments
    )
    return GatewayReport(
        moment(message.at_ms),
        message.snapshot_version,
        counts,
        draining=message.draining,
        bytes_sent=message.bytes_sent,
        connections=message.connections,
    )


def route_snapshot(snapshot: RouteSnapshot) -> routes_pb2.RouteSnapshot:
    """A snapshot as gateways read it."""
    return routes_pb2.RouteSnapshot(
        version=snapshot.version,
        made_at_ms=milliseconds(snapshot.made_at),
        deployments=[_deployment_route(d) for d in snapshot.routes.deployments],
        replicas=[_replica_route(r) for r in snapshot.routes.replicas],
        stamp=cluster_stamp(snapshot.stamp),
    )


def _deployment_route(route: DeploymentRoute) -> routes_pb2.DeploymentRoute:
    return routes_pb2.DeploymentRoute(
        name=route.name,
        model=route.model,
        base_family=route.base_family,
        created=route.created,
        max_model_len=route.max_model_len,
        adapters=[
            routes_pb2.AdapterAlias(alias=alias, adapter=adapter)
            for alias, adapter in route.adapters
        ],
        limits=routes_pb2.Limits(
            max_ongoing=route.max_ongoing,
            max_queued=route.max_queued,
            queue_deadline_ms=route.queue_deadline_ms,
            first_event_deadline_ms=route.first_event_deadline_ms,
        ),
        generation=route.generation,
        uid=route.uid,
        template_digest=route.template_digest,
    )


def _replica_route(route: ReplicaRoute) -> routes_pb2.ReplicaRoute:
    return routes_pb2.ReplicaRoute(
        id=route.id,
        deployment=route.deployment,
        address=route.address,
        node=route.node,
        zone=route.zone,
        state=_ROUTE_STATES[route.state],
        capacity=route.capacity,
        adapters=route.adapters,
        revision=route.generation,
        deployment_uid=route.deployment_uid,
        template_digest=route.template_digest,
    )
