"""A node's metrics: its machine, its replicas, and what these tell of themselves and their engines.

The page is made in the thread of whoever asks. Replicas are asked beside each other and have little
time, so that one that hangs costs nobody; what is wrong with one's text costs that one's alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from penstock.control.errors import Unavailable
from penstock.control.metrics import node_table as table
from penstock.control.metrics.relabel import Family, merged, parsed, rendered
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

REPLICA_LIMIT = timedelta(seconds=2)
# Beyond that: the loop may be busy.
PAGE_MARGIN = timedelta(seconds=3)
_SERVING = (nodes_pb2.REPLICA_PHASE_READY, nodes_pb2.REPLICA_PHASE_DRAINING)
_PHASES = {
    number: name.removeprefix("REPLICA_PHASE_").lower()
    for name, number in nodes_pb2.ReplicaPhase.items()
    if number
}
_STARTS = {nodes_pb2.START_KIND_COLD: "cold", nodes_pb2.START_KIND_WARM: "warm"}


class Replicas(Protocol):
    """What runs here."""

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        """Every replica, whole."""


class ReplicaMetrics(Protocol):
    """Asks replicas for their metrics."""

    async def metrics(self, replica: ReplicaAddress, *, within: timedelta) -> str:
        """A replica's own and its engine's, as Prometheus text; empty where it knows none. Raises
        `Unavailable`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Reads the machine; both may be called from any thread."""

    resources: Callable[[], nodes_pb2.NodeResources]
    idle_cpu_seconds: Callable[[], float]  # of all cores together, since it started


# A replica's id and deployment, and what it told; None: nothing that can be used.
_Told = tuple[tuple[str, str], str | None]
_Asked = tuple[list[nodes_pb2.ReplicaStatus], list[_Told], nodes_pb2.WarmPool]
_Read = tuple[tuple[str, str], Mapping[str, Family] | None]


class NodeMetrics:
    """`page` is called from any thread but the loop's."""

    def __init__(
        self,
        replicas: Replicas,
        source: ReplicaMetrics,
        machine: Machine,
        loop: asyncio.AbstractEventLoop,
        warm_pool: Callable[[], nodes_pb2.WarmPool] = nodes_pb2.WarmPool,
    ) -> None:
        self._replicas = replicas
        self._source = source
        self._machine = machine
        self._loop = loop
        self._warm_pool = warm_pool
        self._one_at_a_time = threading.Lock()

    def page(self) -> bytes:
        """All of it as Prometheus text. Raises Unavailable where the agent is busy, or stops."""
        with self._one_at_a_time:
            statuses, told, pool = self._on_the_loop()
        read = [(owner, _read(owner, text)) for owner, text in told]
        found = self._machine.resources()
        machine = _machine(found, self._machine.idle_cpu_seconds())
        told_here = (*_replicas(statuses), *_memory(statuses, found), *_pool(pool))
        own = _Own([*told_here, *_asked(read), *machine])
        theirs = merged((found for _, found in read if found), taken=own.names())
        return generate_latest(own) + rendered(theirs).encode()

    def _on_the_loop(self) -> _Asked:
        asking = self._ask_all()
        limit = REPLICA_LIMIT + PAGE_MARGIN
        try:
            future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        except RuntimeError as error:  # the loop is closed
            asking.close()
            raise Unavailable("the node agent stops") from error
        try:
            return future.result(limit.total_seconds())
        except TimeoutError as error:
            future.cancel()
            raise Unavailable("the node agent is too busy to be asked: ask again") from error

    async def _ask_all(self) -> _Asked:
        statuses = self._replicas.statuses()
        serving = [s for s in statuses if s.phase in _SERVING and s.address]
        told = list(await asyncio.gather(*map(self._ask, serving)))
        return statuses, told, self._warm_pool()

    async def _ask(self, status: nodes_pb2.ReplicaStatus) -> _Told:
        owner = status.replica_id, status.deployment
        where = ReplicaAddress(status.replica_id, status.address, status.own_token)
        try:
            return owner, await self._source.metrics(where, within=REPLICA_LIMIT)
        except Unavailable as error:
            log.debug("no metrics of replica %s: %s", status.replica_id, error)
            return owner, None


class _Own(CollectorRegistry):
    """What the agent itself knows."""

    def __init__(self, families: Sequence[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Every family."""
        return iter(self._families)

    def names(self) -> set[str]:
        """The families' names, as the page has them."""
        return {f"{f.name}_total" if f.type == "counter" else f.name for f in self._families}


def _read(owner: tuple[str, str], text: str | None) -> Mapping[str, Family] | None:
    """A replica's text with its labels; None where there is none, or none that can be read."""
    try:
        return (
            None if text is None else parsed(text, dict(zip(table.OF_REPLICA, owner, strict=True)))
        )
    except ValueError as error:
        log.debug("metrics of replica %s cannot be read: %s", owner[0], error)
        return None


def _replicas(statuses: Sequence[nodes_pb2.ReplicaStatus]) -> Iterator[Metric]:
    found = (_PHASES.get(status.phase, "") for status in statuses)
    yield table.REPLICAS.by_kind(_PHASES.values(), found)
    yield table.RESTARTS.each(((s.replica_id, s.deployment), s.restarts) for s in statuses)
    woken = [s for s in statuses if s.wakes]
    yield table.WAKES.each(((s.replica_id, s.deployment), s.wakes) for s in woken)
    yield table.WAKE_SECONDS.each(((s.replica_id, s.deployment), s.wake_ms / 1000) for s in woken)
    yield table.START_STAGES.each(
        ((s.replica_id, s.deployment, _STARTS.get(s.start.kind, ""), each.name), each.ms / 1000)
        for s in statuses
        for each in s.start.stages
    )


def _pool(pool: nodes_pb2.WarmPool) -> Iterator[Metric]:
    yield table.POOL_MEMBERS.by({"wanted": pool.target, "waiting": pool.waiting})
    yield table.STARTS.by({"warm": pool.claims, "cold": pool.cold_starts})


def _memory(
    statuses: Sequence[nodes_pb2.ReplicaStatus], found: nodes_pb2.NodeResources
) -> Iterator[Metric]:
    owners = {s.replica_id: (s.replica_id, s.deployment) for s in statuses}
    taken = [(owners[m.replica_id], m) for m in found.replicas if m.replica_id in owners]
    yield table.MEMORY.each((owner, memory.memory_bytes) for owner, memory in taken)
    yield table.GPU_MEMORY.each(
        (owner, memory.device_memory_bytes) for owner, memory in taken if found.devices
    )


def _asked(read: Sequence[_Read]) -> Iterator[Metric]:
    yield table.METRICS_UP.each((owner, found is not None) for owner, found in read)


def _machine(found: nodes_pb2.NodeResources, idle_cpu_seconds: float) -> Iterator[Metric]:
    yield table.CPUS.one(found.cpus)
    yield table.CPU_IDLE.one(idle_cpu_seconds)
    yield table.MACHINE_MEMORY.one(found.memory_bytes)
    yield table.MACHINE_MEMORY_AVAILABLE.one(found.memory_available_bytes)
    devices = [((str(d.index), d.uuid, d.name), d) for d in found.devices]
    yield table.DEVICE_MEMORY.each((words, device.memory_bytes) for words, device in devices)
    yield table.DEVICE_MEMORY_USED.each(
        (words, device.memory_used_bytes) for words, device in devices
    )
