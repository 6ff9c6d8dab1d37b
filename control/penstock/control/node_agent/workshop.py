"""What supervising replicas takes of the outside world, as Protocols, and how patient it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from penstock.control.node_agent.state_files import StateFiles
from penstock.control.supervision.restart_policy import RestartPolicy
from penstock.v1 import nodes_pb2


@dataclass(frozen=True, slots=True)
class Pulse:
    """A replica's answer to a Health call of depth ready."""

    ok: bool
    draining: bool = False
    detail: str = ""  # why not ok, for a person


@dataclass(frozen=True, slots=True)
class SupervisionTimings:
    """How patient a supervisor is; tests shorten it."""

    ping_every: timedelta = timedelta(seconds=1)
    ping_timeout: timedelta = timedelta(seconds=5)
    # While it loads, so that a replica is known to be ready soon after it is.
    loading_ping_every: timedelta = timedelta(milliseconds=100)
    # Alive without a good answer for so long: hung. Raise where steps of the engine take longer.
    hang_after: timedelta = timedelta(seconds=15)
    # From the process's start to ready. Raise for models that load longer.
    start_deadline: timedelta = timedelta(seconds=600)
    # From SIGTERM to SIGKILL of the whole group, after running calls got their time.
    stop_grace: timedelta = timedelta(seconds=5)


class Process(Protocol):
    """A process that leads its own group."""

    pid: int
    started_at: float

    async def wait(self) -> int | None:
        """Returns at its end with the exit code, None where it cannot be known."""
        ...

    def terminate(self) -> None:
        """SIGTERM to the process alone."""
        ...

    def kill_group(self) -> None:
        """SIGKILL to it and all it started."""
        ...


class ProcessLauncher(Protocol):
    """Starts processes."""

    async def start(self, argv: Sequence[str], *, log_path: Path) -> Process:
        """Raises `LaunchFailed`."""
        ...


class ReplicaProbe(Protocol):
    """Talks to the Inference service of a replica."""

    async def pulse(self, address: str, *, within: timedelta) -> Pulse | None:
        """Whether it is ready; None if there was no answer in time."""
        ...

    async def drain(self, address: str, deadline: timedelta) -> None:
        """Lets running calls finish; returns when they have, at the deadline, or if it is gone."""
        ...


class Clock(Protocol):
    """Time, as supervision needs it."""

    def now(self) -> datetime:
        """Wall-clock time."""
        ...

    def monotonic(self) -> float:
        """Seconds, never set back."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Returns after the duration."""
        ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every supervisor of a node works with."""

    launcher: ProcessLauncher
    probe: ReplicaProbe
    clock: Clock
    files: StateFiles
    command: Callable[[nodes_pb2.ReplicaSpec], list[str]]
    on_change: Callable[[], None]  # called after each change of a record
    policy: RestartPolicy
    timings: SupervisionTimings
