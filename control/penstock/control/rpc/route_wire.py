"""Messages of routes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import TypeVar

from penstock.adapters.alias import Target
from penstock.adapters.shown import public_name
from penstock.control.declared.messages import message_of, numbers_of, value_of
from penstock.control.rpc.canary_wire import step_counts
from penstock.control.rpc.recording_wire import recording_rule
from penstock.control.rpc.shadow_wire import shadow_rule
from penstock.control.rpc.tenant_wire import tenant
from penstock.control.rpc.wire import cluster_stamp, milliseconds, moment
from penstock.control.state.cluster import DeploymentCounts, GatewayReport
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.availability import Availability
from penstock.control.state.routing.limits import SessionAffinity
from penstock.control.state.routing.program_counts import ProgramCounts, ProgramFailure
from penstock.control.state.routing.slo import SloCount
from penstock.control.state.routing.snapshot import DeploymentRoute, ReplicaRoute, RouteSnapshot
from penstock.control.state.routing.suspects import EngineDeath, EngineEnd, Suspect
from penstock.control.state.tenancy.spend import NANO
from penstock.v1 import canary_pb2, inference_pb2, routes_pb2, slo_pb2, suspects_pb2

_Route = TypeVar("_Route")
_Message = TypeVar("_Message")

_ROUTED = (ReplicaState.STARTING, ReplicaState.READY, ReplicaState.DRAINING)
_STATES = numbers_of(inference_pb2.ReplicaState.DESCRIPTOR, _ROUTED)
_AVAILABILITIES = numbers_of(routes_pb2.Availability.DESCRIPTOR, Availability)
_AFFINITIES = {SessionAffinity.NONE: "", SessionAffinity.REVISION: "revision"}
_ENDS = numbers_of(suspects_pb2.EngineEnd.DESCRIPTOR, EngineEnd)
_END_OF = {wire: end for end, wire in _ENDS.items()}


def gateway_report(message: routes_pb2.GatewayReport, machine: str = "") -> GatewayReport:
    """What a gateway counted; `machine`: the host that the report came from, empty: not known."""
    counts = tuple(
        value_of(DeploymentCounts, each, slo=tuple(value_of(SloCount, one) for one in each.slo))
        for each in message.deployments
    )
    return value_of(
        GatewayReport,
        message,
        at=moment(message.at_ms),
        machine=machine,
        deployments=counts,
        doubts=tuple((d.replica_id, d.reason, d.for_ms) for d in message.doubts),
        streams=_streams(message),
        canaries=step_counts(message.canaries),
        programs={
            each.deployment: _program_counts(each.program)
            for each in message.deployments
            if each.HasField("program")
        },
    )


def _program_counts(message: routes_pb2.ProgramReport) -> ProgramCounts:
    failures = tuple(value_of(ProgramFailure, each) for each in message.failures)
    return value_of(ProgramCounts, message, failures=failures)


def _streams(message: routes_pb2.GatewayReport) -> dict[str, int]:
    """By tenant; of one that is told twice, the most."""
    found: dict[str, int] = {}
    for each in message.streams:
        found[each.tenant] = max(found.get(each.tenant, 0), each.under_way)
    return found


def suspect(message: suspects_pb2.Suspect) -> Suspect:
    """A request that a gateway suspects."""
    deaths = (
        value_of(EngineDeath, each, end=_END_OF.get(each.end, EngineEnd.CRASHED))
        for each in message.deaths
    )
    return value_of(Suspect, message, deaths=tuple(deaths))


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
        encode = partial(_replica_route, wall_ahead=snapshot.wall_ahead)
        self._replicas = _encoded(replicas, self._replicas, encode)
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
            adapters=[message_of(routes_pb2.AdapterVersion, each) for each in routes.adapters],
            shadows=[
                *map(shadow_rule, routes.shadows),
                *map(recording_rule, routes.recordings),
            ],
            canaries=[message_of(canary_pb2.CanaryRule, each) for each in routes.canaries],
            comparer_address=routes.comparer_address,
            lost_accelerators=[
                message_of(routes_pb2.LostAccelerators, each) for each in routes.lost_accelerators
            ],
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
    return message_of(
        routes_pb2.DeploymentRoute,
        route,
        model=public_name(route.model),
        aliases=[_alias(name, target) for name, target in route.aliases],
        limits=message_of(routes_pb2.Limits, route.limits, resume=bool(route.limits.resume)),
        selection_policy=route.sharing.policy.value,
        session_affinity=_AFFINITIES[route.sharing.session_affinity],
        canary=[
            message_of(routes_pb2.CanaryWeight, each)
            for each in (*route.sharing.canary, *route.shares)
        ],
        availability=_AVAILABILITIES[route.prospect.availability],
        availability_detail=route.prospect.detail,
        expected_ready_at_ms=route.prospect.expected_ready_at_ms,
        ladders=[message_of(routes_pb2.Ladder, each) for each in route.degrading.ladders],
        budget_tokens_per_day=route.budgets.tokens_per_day,
        budget_nanousd_per_day=round(route.budgets.usd_per_day * NANO),
        prices=routes_pb2.Prices(
            input=route.prices.usd_per_million_input,
            output=route.prices.usd_per_million_output,
            cached=route.prices.cached,
        ),
        program=message_of(routes_pb2.Program, route.program) if route.program else None,
        slo=message_of(slo_pb2.Slo, route.slo),
    )


def _alias(name: str, target: Target) -> routes_pb2.AdapterAlias:
    """One version for everybody is told as older gateways know it, too."""
    shares = [
        routes_pb2.AdapterShare(adapter=str(ref), weight=weight) for ref, weight in target.shares
    ]
    return routes_pb2.AdapterAlias(alias=name, adapter=shares[0].adapter, shares=shares)


def _replica_route(route: ReplicaRoute, wall_ahead: timedelta) -> routes_pb2.ReplicaRoute:
    """Gateways compare its moment with their own clocks."""
    at = milliseconds(route.hand_over_at + wall_ahead) if route.hand_over_at else 0
    return message_of(
        routes_pb2.ReplicaRoute, route, state=_STATES[route.state], hand_over_at_ms=at
    )


def _suspect(value: Suspect) -> suspects_pb2.Suspect:
    deaths = [
        message_of(suspects_pb2.EngineDeath, each, end=_ENDS[each.end]) for each in value.deaths
    ]
    return message_of(suspects_pb2.Suspect, value, deaths=deaths)
