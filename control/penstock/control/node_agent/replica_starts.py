"""How a replica's processes come to be: out of the warm pool where that gives one, else cold.

A claimed process that comes to nothing within its first seconds is followed by a cold start, once,
before the usual pauses begin: it may be the pool's fault, and then nobody has to wait for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from penstock.control.errors import LaunchFailed
from penstock.control.node_agent.dependencies import SupervisorDependencies
from penstock.control.node_agent.warm_dependencies import StartOrder
from penstock.control.node_agent.warm_pool import Cold
from penstock.control.state.fleet.replica import ReplicaStart, StartKind
from penstock.control.supervision.process import Process
from penstock.v1 import nodes_pb2

Runs = Callable[[Process, ReplicaStart], None]
Pause = Callable[[timedelta], Awaitable[bool]]  # false: the replica is to be stopped


class NoMemory(LaunchFailed):
    """A replica was not started, since the node has no memory for it."""


class ReplicaStarts:
    """Of one replica."""

    def __init__(self, needs: SupervisorDependencies, log_path: Path) -> None:
        self._needs = needs
        self._log_path = log_path
        self._warm = False  # the process that was started last
        self._began = 0.0  # monotonic seconds, of the same
        self._cold_because = ""  # the next one is; empty: the pool is asked
        self._blame = ""  # how a claim came to nothing since the replica was last ready

    async def start(self, spec: nodes_pb2.ReplicaSpec, runs: Runs, pause: Pause) -> Process:
        """Starts a process, of which `runs` hears before it can register. Raises LaunchFailed, as
        `NoMemory` where the node has no memory for it and gets none in a while."""
        await self._find_memory(spec, pause)
        needs, because = self._needs, self._cold_because
        self._cold_because, self._began = "", needs.clock.monotonic()
        order = StartOrder(
            spec.engine, needs.command(spec), needs.environment(spec), self._log_path
        )
        claimed = (
            needs.pool.went_cold(spec.engine, because)
            if because
            else await needs.pool.claim(order, lambda it: runs(it, ReplicaStart(StartKind.WARM)))
        )
        self._warm = not isinstance(claimed, Cold)
        if not isinstance(claimed, Cold):
            return claimed
        process = await needs.launcher.start(order.argv, log_path=self._log_path, env=order.env)
        runs(process, ReplicaStart(StartKind.COLD, claimed.reason))
        return process

    async def _find_memory(self, spec: nodes_pb2.ReplicaSpec, pause: Pause) -> None:
        timings = self._needs.timings
        for look in range(timings.memory_looks):
            if look and not await pause(timings.memory_again_after):
                break
            refusal = await self._needs.memory.refusal(spec)
            if not refusal:
                return
        raise NoMemory(refusal)

    @property
    def registers_within(self) -> float | None:
        """Seconds that the process has for it; None: as long as it likes."""
        return self._needs.pool.patience.register_limit.total_seconds() if self._warm else None

    def ready(self) -> None:
        """The process that was started last is. Where a cold one is after a warm one was not, that
        was the pool's fault; where neither is it was not."""
        blame, self._blame = self._blame, ""
        if self._warm:
            self._needs.pool.worked()
        elif blame:
            self._needs.pool.failed(blame)

    def forgives(self, error: str) -> bool:
        """Whether the end of a process that was never ready is the pool's affair: the next one is
        started at once, and cold. Only the first is forgiven; after the others, too, a cold one
        has its turn, for the pool may have been at fault each time."""
        ran = timedelta(seconds=self._needs.clock.monotonic() - self._began)
        if not self._warm or ran >= self._needs.pool.patience.first_seconds:
            return False
        self._cold_because = f"its warm process came to nothing: {error}"
        first, self._blame = not self._blame, error
        return first
