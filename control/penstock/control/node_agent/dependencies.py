"""What supervising replicas takes of the outside world, as Protocols, and how patient it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from penstock.control.node_agent.replica_record import ReplicaRecord
from penstock.control.node_agent.state_files import StateFiles
from penstock.control.node_agent.warm_pool import WarmPool
from penstock.control.settings import START_LIMIT
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Launcher
from penstock.control.supervision.restart_policy import RestartPolicy
from penstock.v1 import inference_pb2, nodes_pb2


@dataclass(frozen=True, slots=True)
class Pulse:
    """A replica's answer to a Health call of depth ready."""

    ok: bool
    draining: bool = False
    asleep: bool = False
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
    # From the process's start to ready, where the spec says nothing. The first start of a model
    # downloads it.
    start_limit: timedelta = START_LIMIT
    # Between tries to tell a replica what it is to hold.
    keep_again_after: timedelta = timedelta(seconds=1)
    # What running calls get of a replica that is renewed.
    renewal_drain: timedelta = timedelta(seconds=30)
    # Between looks whether a replica finds memory now, and how many: what ended lately, or stops
    # beside it, gives its own back in a while.
    memory_again_after: timedelta = timedelta(seconds=1)
    memory_looks: int = 5
    # Between looks at what replicas take, each of which walks through all that they have mapped.
    measure_every: timedelta = timedelta(seconds=10)
    # From SIGTERM to SIGKILL of the whole group, after running calls got their time.
    stop_grace: timedelta = timedelta(seconds=5)


class ReplicaProbe(Protocol):
    """Talks to the Inference service of a replica."""

    async def pulse(self, replica: ReplicaAddress, *, within: timedelta) -> Pulse | None:
        """Whether it is ready; None if there was no answer in time."""

    async def drain(self, replica: ReplicaAddress, deadline: timedelta) -> None:
        """Lets running calls finish; returns when they have, at the deadline, or if it is gone.

        Raises `TokenRefused` where it takes no order of ours.
        """

    async def sleep(self, replica: ReplicaAddress, drain: timedelta) -> str:
        """Lets running calls finish and puts it to sleep; why it does not, empty: it sleeps."""

    async def wake(self, replica: ReplicaAddress, *, within: timedelta) -> int:
        """Wakes it; returns how often its process was woken by now. Raises `Unavailable`."""

    async def keep_adapters(
        self, replica: ReplicaAddress, keep: inference_pb2.KeepAdapters, *, within: timedelta
    ) -> None:
        """Tells it what it is to hold. Raises `Unavailable` where it did not hear, and
        `InvalidInput` where saying it again would not help."""


class MemoryJudge(Protocol):
    """What memory this node has for replicas."""

    async def refusal(self, spec: nodes_pb2.ReplicaSpec) -> str:
        """Why a replica is not to be started now; empty: it may be."""


class StartObserver(Protocol):
    """Is told how starts of replicas end."""

    def start_ended(self, record: ReplicaRecord, error: str) -> None:
        """A process of the replica is ready, or never will be; empty: it is."""


@dataclass(frozen=True, slots=True)
class SupervisorDependencies:
    """What every supervisor of a node works with."""

    launcher: Launcher
    pool: WarmPool
    probe: ReplicaProbe
    clock: Clock
    files: StateFiles
    command: Callable[[nodes_pb2.ReplicaSpec], list[str]]
    environment: Callable[[nodes_pb2.ReplicaSpec], Mapping[str, str]]  # added to ours
    # Whether a process of this command line finds keys, and may send them, where this node lets
    # its replica: one that was adopted may not, and is renewed.
    keeps_secrets: Callable[[nodes_pb2.ReplicaSpec, Sequence[str]], bool]
    on_change: Callable[[], None]  # called after each change of a record
    memory: MemoryJudge
    starts: StartObserver
    policy: RestartPolicy
    timings: SupervisionTimings
