"""Messages of common.proto and nodes.proto to values of `state/` and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from penstock.control.declared.messages import members_of, message_of, numbers_of, value_of
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.fleet.memory import FitLine, FitVerdict, MemoryFit, ReplicaMemory
from penstock.control.state.fleet.replica import (
    Device,
    FailedAdapter,
    KeptAdapter,
    NodeFacts,
    NodeId,
    NodeIntent,
    ReplicaStart,
    ReplicaState,
    ReplicaStatus,
    Resources,
    StartKind,
    StartStage,
    WarmPool,
)
from penstock.control.state.stamp import Stamp
from penstock.v1 import common_pb2, inference_pb2, nodes_pb2

_PHASES = members_of(
    nodes_pb2.ReplicaPhase.DESCRIPTOR, set(ReplicaState) - {ReplicaState.PENDING, ReplicaState.LOST}
)
_INTENTS = members_of(nodes_pb2.NodeIntent.DESCRIPTOR, NodeIntent)
_STARTS = members_of(nodes_pb2.StartKind.DESCRIPTOR, set(StartKind) - {StartKind.UNTOLD})
_FITS = numbers_of(nodes_pb2.FitVerdict.DESCRIPTOR, set(FitVerdict) - {FitVerdict.UNKNOWN})
_VERDICTS = {number: verdict for verdict, number in _FITS.items()}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(message: common_pb2.ClusterStamp) -> Stamp:
    """Whose message it is."""
    return value_of(Stamp, message)


def cluster_stamp(value: Stamp) -> common_pb2.ClusterStamp:
    """The inverse of `stamp`."""
    return message_of(common_pb2.ClusterStamp, value)


def host_of(peer: str) -> str:
    """The host of a gRPC peer, "ipv4:127.0.0.1:50051" or "ipv6:%5B::1%5D:50051"; IPv6 in brackets,
    empty where it has none."""
    kind, _, address = unquote(peer).partition(":")
    return address.rpartition(":")[0] if kind in ("ipv4", "ipv6") else ""


def milliseconds(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def moment(milliseconds_since_1970: int) -> datetime:
    """The inverse of `milliseconds`; raises OverflowError for times outside the calendar."""
    return _EPOCH + timedelta(milliseconds=milliseconds_since_1970)


def replica_status(message: nodes_pb2.ReplicaStatus) -> ReplicaStatus:
    """An agent's report on one replica; a phase that this version does not know is starting."""
    return value_of(
        ReplicaStatus,
        message,
        generation=message.revision,
        state=_PHASES.get(message.phase, ReplicaState.STARTING),
        failed_adapters=tuple(value_of(FailedAdapter, each) for each in message.failed_adapters),
        start=replica_start(message.start),
    )


def replica_start(message: nodes_pb2.ReplicaStart) -> ReplicaStart:
    """How its running process came to be; a kind that this version does not know is not told."""
    stages = tuple(value_of(StartStage, each) for each in message.stages)
    kind = _STARTS.get(message.kind, StartKind.UNTOLD)
    return ReplicaStart(kind, message.reason, stages)


def node_facts(message: nodes_pb2.NodeInfo) -> NodeFacts:
    """What an agent says of itself."""
    told = resources(message.resources)
    return value_of(NodeFacts, message, id=NodeId(message.node_id), resources=told)


def resources(message: nodes_pb2.NodeResources) -> Resources:
    """What a machine has."""
    devices = tuple(value_of(Device, each) for each in message.devices)
    replicas = tuple(value_of(ReplicaMemory, each) for each in message.replicas)
    return value_of(Resources, message, devices=devices, replicas=replicas)


def memory_fit(message: nodes_pb2.FitReply, node: str) -> MemoryFit:
    """A sum of memory; a verdict that this version does not know is none."""
    lines = tuple(value_of(FitLine, each) for each in message.lines)
    verdict = _VERDICTS.get(message.verdict, FitVerdict.UNKNOWN)
    return value_of(MemoryFit, message, verdict=verdict, lines=lines, node=node)


def fit_reply(fit: MemoryFit) -> nodes_pb2.FitReply:
    """The inverse of `memory_fit`."""
    lines = [message_of(nodes_pb2.FitLine, each) for each in fit.lines]
    return message_of(nodes_pb2.FitReply, fit, verdict=_FITS.get(fit.verdict, 0), lines=lines)


def warm_pool(message: nodes_pb2.WarmPool) -> WarmPool:
    """What an agent says of its warm pool."""
    return value_of(WarmPool, message)


def node_intent(value: int) -> NodeIntent:
    """What an agent is about to do; one that this version does not know is serving."""
    return _INTENTS.get(value, NodeIntent.SERVING)


def replica_spec(order: ReplicaOrder) -> nodes_pb2.ReplicaSpec:
    """An order as the agent reads it."""
    return message_of(
        nodes_pb2.ReplicaSpec,
        order,
        revision=order.generation,
        served_name=order.deployment,
        engine_args=[f"{key}={value}" for key, value in order.engine_args],
        adapters=map(adapter, order.adapters),
    )


def keep_adapters(
    kept: Sequence[KeptAdapter], dropped: Sequence[str]
) -> inference_pb2.KeepAdapters:
    """What a replica is to hold."""
    return inference_pb2.KeepAdapters(adapters=map(adapter, kept), dropped=dropped)


def adapter(kept: KeptAdapter) -> inference_pb2.Adapter:
    """One that a replica is to hold."""
    return message_of(inference_pb2.Adapter, kept)
