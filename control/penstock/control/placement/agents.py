"""Replicas on nodes that our own agents run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from penstock.control.placement.placement import ReplicaOrder
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.replica import (
    KeptAdapter,
    NodeFacts,
    NodeId,
    ReplicaId,
    ReplicaStatus,
)


class AgentClient(Protocol):
    """A connection to one node agent."""

    async def start_replica(self, order: ReplicaOrder) -> ReplicaStatus:
        """Raises NodeUnreachable or ReplicaRefused."""

    async def stop_replica(
        self, replica_id: ReplicaId, drain: timedelta, *, sleep: bool = False
    ) -> None:
        """Raises NodeUnreachable."""

    async def keep_adapters(
        self, replica_id: ReplicaId, kept: Sequence[KeptAdapter], dropped: Sequence[str]
    ) -> None:
        """Raises NodeUnreachable, `unknown-replica` or ReplicaRefused."""

    async def fit(self, node: NodeId, order: ReplicaOrder) -> MemoryFit:
        """Raises NodeUnreachable or ReplicaRefused."""

    async def close(self) -> None:
        """Hangs up."""


class AgentPlacement:
    """A Placement over node agents: one connection to each address, kept until `close`."""

    def __init__(self, dial: Callable[[str], AgentClient]) -> None:
        self._dial = dial
        self._clients: dict[str, AgentClient] = {}

    async def start(self, node: NodeFacts, order: ReplicaOrder) -> ReplicaStatus:
        """Asks the node's agent to start a replica."""
        return await self._client(node).start_replica(order)

    async def stop(
        self, node: NodeFacts, replica_id: ReplicaId, drain: timedelta, *, sleep: bool
    ) -> None:
        """Asks the node's agent to drain and stop a replica, or to put it to sleep."""
        await self._client(node).stop_replica(replica_id, drain, sleep=sleep)

    async def keep_adapters(
        self,
        node: NodeFacts,
        replica_id: ReplicaId,
        kept: Sequence[KeptAdapter],
        dropped: Sequence[str],
    ) -> None:
        """Tells the node's agent what a replica is to hold."""
        await self._client(node).keep_adapters(replica_id, kept, dropped)

    async def fit(self, node: NodeFacts, order: ReplicaOrder) -> MemoryFit:
        """What a replica would take on the node; nothing is started. Raises NodeUnreachable, or
        ReplicaRefused by an agent that is too old to tell."""
        return await self._client(node).fit(node.id, order)

    async def close(self) -> None:
        """Hangs up on every agent."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _client(self, node: NodeFacts) -> AgentClient:
        client = self._clients.get(node.agent_address)
        if client is None:
            client = self._clients[node.agent_address] = self._dial(node.agent_address)
        return client
