"""Messages of routes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TypeVar

from penstock.adapters.alias import Target
from penstock.adapters.shown import public_name
from penstock.control.rpc.recording_wire import recording_rule
from penstock.control.rpc.shadow_wire import shadow_rule
from penstock.control.rpc.tenant_wire import tenant
from penstock.control.rpc.wire import cluster_stamp, milliseconds, moment
from penstock.control.state.cluster import DeploymentCounts, GatewayReport
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.availability import Availability
from penstock.control.state.routing.snapshot import DeploymentRoute, ReplicaRoute, RouteSnapshot
from penstock.control.state.routing.suspects import EngineDeath, EngineEnd, Suspect
from penstock.control.state.tenancy.spend import NANO
from penstock.v1 import inference_pb2, routes_pb2

_Route = TypeVar("_Route")
_Message = TypeVar("_Message")

_STATES = {
    ReplicaState.STARTING: inference_pb2.REPLICA_STATE_STARTING,
    ReplicaState.READY: inference_pb2.REPLICA_STATE_READY,
    ReplicaState.DRAINING: inference_pb2.REPLICA_STATE_DRAINING,
}
_AVAILABILITIES = {
    Availability.SERVING: routes_pb2.AVAILABILITY_SERVING,
    Availability.LOADING: routes_pb2.AVAILABILITY_LOADING,
    Availability.SCALED_TO_ZERO: routes_pb2.AVAILABILITY_SCALED_TO_ZERO,
    Availability.FAILED: routes_pb2.AVAILABILITY_FAILED,
}
_ENDS = {
    EngineEnd.CRASHED: routes_pb2.ENGINE_END_CRASHED,
    EngineEnd.KILLED: routes_pb2.ENGINE_END_KILLED,
    EngineEnd.HUNG: routes_pb2.ENGINE_END_HUNG,
    EngineEnd.LOST: routes_pb2.ENGINE_END_LOST,
}
_END_OF = {wire: end for end, wire in _ENDS.items()}


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
            queue_wait_us_sum=d.queue_wait_us_sum,
            sent=d.sent,
            estimated_wait_ms=d.estimated_wait_ms,
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
        instance=message.instance,
        doubts=tuple((d.replica_id, d.reason, d.for_ms) for d in message.doubts),
        streams=_streams(message),
    )


def _streams(message: routes_pb2.GatewayReport) -> dict[str, int]:
    """By tenant; of one that is told twice, the most."""
    found: dict[str, int] = {}
    for each in message.streams:
        found[each.tenant] = max(found.get(each.tenant, 0), each.under_way)
    return found


def suspect(message: routes_pb2.Suspect) -> Suspect:
    """A request that a gateway suspects."""
    return Suspect(
        fingerprint=message.fingerprint,
        deployment=message.deployment,
        deployment_uid=message.deployment_uid,
        path=message.path,
        deaths=tuple(
            EngineDeath(
                d.replica_id, d.at_ms, d.gateway_id, _END_OF.get(d.end, EngineEnd.CRASHED), d.shared
            )
            for d in message.deaths
        ),
        until_ms=message.until_ms,
        answered_ms=message.answered_ms,
    )


class RouteEncoder:
    """Snapshots as gateways read them; of one after the other, what has changed is encoded."""

    def __init__(self) -> None:
        self._deployments: dict[str, tuple[DeploymentRoute, routes_pb2.DeploymentRoute]] = {}
        self._replicas: dict[str, tuple[ReplicaRoute, routes_pb2.ReplicaRoute]] = {}

    def message(self, snapshot: RouteSnapshot) -> routes_pb2.RouteSnapshot:
        """A snapshot, whole."""
        routes = snapshot.routes
        deployments = {str(d.name): d for d in routes.deployments}
        replicas = {r.id: r for r in routes.replicas}
        self._deployments = _encoded(deployments, self._deployments, _deployment_route)
        self._replicas = _encoded(replicas, self._replicas, _replica_route)
        return routes_pb2.RouteSnapshot(
            version=snapshot.version,
            made_at_ms=milliseconds(snapshot.made_at),
            deployments=[message for _, message in self._deployments.values()],
            replicas=[message for _, message in self._replicas.values()],
            stamp=cluster_stamp(snapshot.stamp),
            suspects=[_suspect(s) for s in routes.suspects],
            tenants=[tenant(t) for t in routes.tenants],
            keys_required=routes.keys_required,
            ended_keys=routes.ended_keys,
            adapters=[routes_pb2.AdapterVersion(**asdict(each)) for each in routes.adapters],
            shadows=[
                *map(shadow_rule, routes.shadows),
                *map(recording_rule, routes.recordings),
            ],
            comparer_address=routes.comparer_address,
        )


def _encoded(
    values: Mapping[str, _Route],
    known: Mapping[str, tuple[_Route, _Message]],
    encode: Callable[[_Route], _Message],
) -> dict[str, tuple[_Route, _Message]]:
    """Each value with its message; the one that is known where the value is the same object."""
    return {
        name: known[name] if name in known and known[name][0] is value else (value, encode(value))
        for name, value in values.items()
    }


def _deployment_route(route: DeploymentRoute) -> routes_pb2.DeploymentRoute:
    return routes_pb2.DeploymentRoute(
        name=route.name,
        model=public_name(route.model),
        base_family=route.base_family,
        created=route.created,
        max_model_len=route.max_model_len,
        endpoints=route.endpoints,
        aliases=[_alias(name, target) for name, target in route.aliases],
        limits=routes_pb2.Limits(**asdict(route.limits)),
        selection_policy=route.sharing.policy.value,
        canary=[routes_pb2.CanaryWeight(**asdict(each)) for each in route.sharing.canary],
        generation=route.generation,
        uid=route.uid,
        template_digest=route.template_digest,
        availability=_AVAILABILITIES[route.prospect.availability],
        availability_detail=route.prospect.detail,
        expected_ready_at_ms=route.prospect.expected_ready_at_ms,
        ladders=[
            routes_pb2.Ladder(reason=each.reason, rungs=each.rungs)
            for each in route.degrading.ladders
        ],
        managed=route.managed,
        trims=route.trims,
        without_tools=route.without_tools,
        budget_used_up=route.budget_used_up,
        budget_resets_at_ms=route.budget_resets_at_ms,
        budget_tokens_per_day=route.budgets.tokens_per_day,
        budget_nanousd_per_day=round(route.budgets.usd_per_day * NANO),
        prices=routes_pb2.Prices(
            input=route.prices.usd_per_million_input,
            output=route.prices.usd_per_million_output,
            cached=route.prices.cached,
        ),
    )


def _alias(name: str, target: Target) -> routes_pb2.AdapterAlias:
    """One version for everybody is told as older gateways know it, too."""
    shares = [
        routes_pb2.AdapterShare(adapter=str(ref), weight=weight) for ref, weight in target.shares
    ]
    return routes_pb2.AdapterAlias(alias=name, adapter=shares[0].adapter, shares=shares)


def _replica_route(route: ReplicaRoute) -> routes_pb2.ReplicaRoute:
    return routes_pb2.ReplicaRoute(
        id=route.id,
        deployment=route.deployment,
        address=route.address,
        node=route.node,
        zone=route.zone,
        state=_STATES[route.state],
        capacity=route.capacity,
        adapters=route.adapters,
        revision=route.generation,
        deployment_uid=route.deployment_uid,
        template_digest=route.template_digest,
        own_token=route.own_token,
    )


def _suspect(value: Suspect) -> routes_pb2.Suspect:
    return routes_pb2.Suspect(
        fingerprint=value.fingerprint,
        deployment=value.deployment,
        deployment_uid=value.deployment_uid,
        path=value.path,
        deaths=[
            routes_pb2.EngineDeath(
                replica_id=d.replica_id,
                at_ms=d.at_ms,
                gateway_id=d.gateway_id,
                end=_ENDS[d.end],
                shared=d.shared,
            )
            for d in value.deaths
        ],
        until_ms=value.until_ms,
        answered_ms=value.answered_ms,
    )
