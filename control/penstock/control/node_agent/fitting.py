"""Whether a replica finds memory on this node: asked of the replica room before each start.

The sum is the replica's to make (`penstock.replica.fit`, a process of its own): the agent knows
what is free, and what replicas that are starting will still take. What cannot be told is no reason
to refuse a start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from penstock.control.errors import Unavailable
from penstock.control.state.fleet.memory import FitLine, FitVerdict, MemoryFit, ReplicaMemory
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

JUDGED: Final = "vllm"
"""The engine that takes more than any machine has to spare."""

MOST_AT_ONCE: Final = 4
"""Processes that answer plans: each reads a model's files, beside replicas that are to serve."""
_PATIENCE: Final = 10.0  # seconds, under which other starts wait: a file system may hang
_MOST: Final = (1 << 63) - 1  # bytes that can be told of
_MOST_KEPT: Final = 256  # judgements
_MOST_FILES: Final = 1000  # of a model, that are looked at for changes

_Key = tuple[Any, ...]


class SumSource(Protocol):
    """The replica room's arithmetic."""

    async def told(self, arguments: Sequence[str]) -> Mapping[str, Any]:
        """Its answer. Raises `Unavailable` where there is none, with the reason."""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Reads what is here, at the moment that it is called."""

    resources: Callable[[], nodes_pb2.NodeResources]
    starting: Callable[[], Collection[str]]  # ids of replicas that are not ready yet
    measured: Callable[[], Awaitable[Mapping[str, ReplicaMemory]]]  # what they take, by id


class Fitting:
    """Judges replicas, one at a time before a start. All methods run on one loop."""

    def __init__(self, source: SumSource, node: NodeMemory) -> None:
        self._source = source
        self._node = node
        self._least: dict[_Key, int] = {}  # bytes that have to be free, of what was judged to fit
        self._promised: dict[str, int] = {}  # the same, of replicas that are starting
        self._one_at_a_time = asyncio.Lock()
        self._asked = asyncio.Semaphore(MOST_AT_ONCE)

    async def fit(self, spec: nodes_pb2.ReplicaSpec) -> MemoryFit:
        """The sum of a replica beside what is free now."""
        if spec.engine != JUDGED:
            return MemoryFit(reason=f"engine {spec.engine} loads no model")
        try:
            async with self._asked:
                free = await self._free(spec)
                return fit_of(await self._told(spec, free))
        except Unavailable as error:
            return MemoryFit(reason=str(error))

    async def refusal(self, spec: nodes_pb2.ReplicaSpec) -> str:
        """Why it is not to be started now; empty: it may be, and what it takes is promised to it
        until it is ready."""
        if spec.engine != JUDGED:
            return ""
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._refusal(spec)
            except (Unavailable, TimeoutError) as error:
                why = str(error) or "none came in time"
                log.info("replica %s is started without a sum: %s", spec.replica_id, why)
                return ""

    async def _refusal(self, spec: nodes_pb2.ReplicaSpec) -> str:
        free, key = await self._free(spec), await self._key(spec)
        least = self._least.get(key, free + 1)
        if least > free:
            told = await self._told(spec, free)
            verdict = fit_of(told).verdict
            if verdict is FitVerdict.TOO_LARGE:
                return str(told.get("refusal"))
            least = int(told.get("least", 0))
            if verdict is not FitVerdict.UNKNOWN:  # the model may come to this machine at any time
                self._keep(key, least)
        if not spec.devices:
            self._promised[spec.replica_id] = least
        return ""

    def _keep(self, key: _Key, least: int) -> None:
        if len(self._least) >= _MOST_KEPT:
            self._least.clear()
        self._least[key] = least

    async def _told(self, spec: nodes_pb2.ReplicaSpec, free: int) -> Mapping[str, Any]:
        return await self._source.told([*self._machine(spec, free), *arguments(spec)])

    async def _free(self, spec: nodes_pb2.ReplicaSpec) -> int:
        """Bytes of the machine that nobody has and nobody was promised; of accelerators, which no
        two replicas share, those of the fullest."""
        resources = self._node.resources()
        if spec.devices:
            given = [each for each in resources.devices if each.uuid in spec.devices]
            return min((d.memory_bytes - d.memory_used_bytes for d in given), default=0)
        still = set(self._node.starting()) - {spec.replica_id}
        self._promised = {r: size for r, size in self._promised.items() if r in still}
        if not self._promised:
            return resources.memory_available_bytes
        taken = await self._node.measured()
        missing = (
            max(0, size - taken.get(replica, ReplicaMemory(replica)).memory_bytes)
            for replica, size in self._promised.items()
        )
        return max(0, self._node.resources().memory_available_bytes - sum(missing))

    def _machine(self, spec: nodes_pb2.ReplicaSpec, free: int) -> list[str]:
        return ["--free", str(free), "--device-bytes", str(self._device(spec))]

    def _device(self, spec: nodes_pb2.ReplicaSpec) -> int:
        devices = self._node.resources().devices
        return min((d.memory_bytes for d in devices if d.uuid in spec.devices), default=0)

    async def _key(self, spec: nodes_pb2.ReplicaSpec) -> _Key:
        """What the sum depends on, but for what is free."""
        changed = await asyncio.to_thread(_changed, Path(spec.model))
        return (*arguments(spec), self._device(spec), *changed)


def arguments(spec: nodes_pb2.ReplicaSpec) -> list[str]:
    """A spec as `penstock.replica.fit` takes it."""
    words = [word for setting in spec.engine_args for word in ("--engine-arg", setting)]
    counts = {
        "--adapters": len(spec.adapters),
        "--max-adapters": spec.max_adapters,
        "--max-adapter-rank": spec.max_adapter_rank,
    }
    words += [word for flag, count in counts.items() if count for word in (flag, str(count))]
    return [*words, "--", spec.model]


def fit_of(told: Mapping[str, Any]) -> MemoryFit:
    """The replica room's answer as a value. Raises `Unavailable` for one that cannot be read."""
    try:
        return MemoryFit(
            FitVerdict(told["verdict"]),
            tuple(
                FitLine(each["what"], min(each["bytes"], _MOST), each["note"])
                for each in told["lines"]
            ),
            min(told["needed"], _MOST),
            max(0, told["free"]),
            told["reason"],
            tuple(told["advice"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"the sum of memory cannot be read: {error!r}") from error


def _changed(model: Path) -> list[int]:
    """When the model's directory and each of its files was last written; empty: it is none."""
    found: list[int] = []
    with suppress(OSError):
        for path in (model, *sorted(islice(model.iterdir(), _MOST_FILES))):
            with suppress(OSError):
                found.append(path.stat().st_mtime_ns)
    return found
