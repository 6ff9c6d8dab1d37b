"""What a head of the simulated cluster reaches: agents and replicas, as far as messages arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from penstock.control.errors import NodeUnreachable
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.pings import Ping
from penstock.control.state.fleet.replica import (
    KeptAdapter,
    NodeId,
    ReplicaAddress,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.stamp import Stamp
from tests.fakes.simulated_machines import SimulatedAgent


class Machines(Protocol):
    """What the lines lead to."""

    @property
    def agents(self) -> Mapping[NodeId, SimulatedAgent]:
        """By node."""

    @property
    def cut_off(self) -> int:
        """Steps for which the head reaches no replica."""

    @property
    def before_stop(self) -> Callable[[ReplicaId], None]:
        """Checks an order to stop, just before it is obeyed."""


class AgentLine:
    """An AgentClient."""

    def __init__(self, machines: Machines, node_id: NodeId, own_stamp: Callable[[], Stamp]) -> None:
        self._machines, self._node_id, self._own_stamp = machines, node_id, own_stamp

    async def start_replica(self, order: ReplicaOrder) -> ReplicaStatus:
        agent = self._reached()
        status = agent.start(order)
        self._answered(agent)
        return status

    async def stop_replica(
        self, replica_id: ReplicaId, drain: timedelta, *, sleep: bool = False
    ) -> None:
        agent = self._reached()
        self._machines.before_stop(replica_id)
        agent.stop(replica_id, sleep=sleep)
        self._answered(agent)

    async def keep_adapters(
        self, replica_id: ReplicaId, kept: Sequence[KeptAdapter], dropped: Sequence[str]
    ) -> None:
        agent = self._reached()
        agent.keep(replica_id, kept)
        self._answered(agent)

    async def fit(self, node: NodeId, order: ReplicaOrder) -> MemoryFit:
        raise AssertionError("nobody asks the simulated cluster for sums")

    async def close(self) -> None:
        pass

    def _reached(self) -> SimulatedAgent:
        agent = self._machines.agents[self._node_id]
        if agent.is_away or agent.loses:
            agent.loses = max(agent.loses - 1, 0)
            raise NodeUnreachable(f"{self._node_id}: the order was lost")
        if not agent.accepts(self._own_stamp()):
            raise NodeUnreachable(f"{self._node_id}: the order was refused")
        return agent

    def _answered(self, agent: SimulatedAgent) -> None:
        if agent.mute:
            agent.mute -= 1
            raise NodeUnreachable(f"{self._node_id}: the answer was lost")


class ReplicaLine:
    """A ReplicaPinger."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    async def ping(self, replica: ReplicaAddress) -> Ping:
        if self._machines.cut_off:
            return Ping.TIMED_OUT
        for agent in self._machines.agents.values():
            for status in agent.processes.values():
                if status.address == replica.address:
                    answers = (ReplicaState.READY, ReplicaState.DRAINING)
                    return Ping.ANSWERED if status.state in answers else Ping.REFUSED
        off = any(agent.dead for agent in self._machines.agents.values())
        return Ping.TIMED_OUT if off else Ping.REFUSED

    async def deep_check(self, replica: ReplicaAddress) -> bool:
        return True
