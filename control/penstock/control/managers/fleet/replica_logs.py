"""Replicas' logs, wherever they lie: asked of the agents that keep them, passed on as they come.

An answer has begun when it breaks off, so what is to be known of its end stands in it: lines of our
own begin with `penstock: `, and where it is not all there is, with `penstock: error: `.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from penstock.control.errors import Code, NotFound, PenstockError, Unavailable
from penstock.control.machine_logs.values import LoggedPart, LogQuestion
from penstock.control.managers.cluster import Cluster
from penstock.control.state.fleet.replica import Node, NodeState, ReplicaId

MOST_READERS: Final = 32
MOST_LINES: Final = 10_000  # that one may ask for
USUAL_LINES: Final = 500
OURS: Final = "penstock: "
ERROR: Final = f"{OURS}error: "


class LogRequest(NamedTuple):
    """What of a log is asked for."""

    tail: int  # lines that were written before
    previous: bool = False  # of the process before the one that was started last
    follow: bool = False  # and what is written from now on


class LogPart(NamedTuple):
    """Some whole lines, and what the agent says of what follows them."""

    lines: bytes
    note: str = ""


class AgentLogs(Protocol):
    """The logs that an agent keeps."""

    def read(
        self, address: str, replica_id: ReplicaId, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        """A log, the first part at once. Raises `unknown-replica`, `InvalidInput` and
        `Unavailable`, at any moment."""

    def read_all(self, address: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        """What all processes of the agent's machine wrote. Raises `Unavailable`, at any moment."""


class ReplicaLogs:
    """Reads them for so many at a time."""

    def __init__(self, cluster: Cluster, agents: AgentLogs) -> None:
        self._cluster = cluster
        self._agents = agents
        self._readers = 0

    async def read(self, replica_id: ReplicaId, asked: LogRequest) -> AsyncGenerator[bytes, None]:
        """A log as text. Before the first part it raises `unknown-replica`, `InvalidInput` and
        `Unavailable`; after it, its last line says what went wrong."""
        if self._readers >= MOST_READERS:
            raise Unavailable(f"{MOST_READERS} logs are read here already: end one of them first")
        self._readers += 1
        try:
            begun = False
            try:
                async with aclosing(self._found(replica_id, asked)) as found:
                    async for part in found:
                        begun = True
                        note = f"{OURS}{part.note}\n".encode() if part.note else b""
                        yield part.lines + note
            except PenstockError as error:
                if not begun:
                    raise
                yield f"{ERROR}{error}\n".encode()
        finally:
            self._readers -= 1

    async def _found(
        self, replica_id: ReplicaId, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        """Of the agent that has the replica; of one that is gone, of any that still has its log."""
        view = self._cluster.view()
        replica = view.replicas.get(replica_id)
        if replica and (node := view.nodes.get(replica.node)):
            async with aclosing(self._of(node, replica_id, asked)) as parts:
                async for part in parts:
                    yield part
            return
        observed = [node for _, node in sorted(view.nodes.items()) if node.state is NodeState.READY]
        silent = sorted(view.nodes.keys() - {node.id for node in observed})
        for node in observed:
            begun = False
            try:
                async with aclosing(self._of(node, replica_id, asked)) as parts:
                    async for part in parts:
                        begun = True
                        yield part
                return
            except (NotFound, Unavailable) as error:
                if begun:
                    raise
                silent += [node.id] if isinstance(error, Unavailable) else []
        told = f"; {', '.join(sorted(silent))} did not answer" if silent else ""
        raise NotFound(f"no log of a replica {replica_id!r} is kept{told}", Code.UNKNOWN_REPLICA)

    async def _of(
        self, node: Node, replica_id: ReplicaId, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        try:
            address = node.facts.agent_address
            async with aclosing(self._agents.read(address, replica_id, asked)) as parts:
                async for part in parts:
                    yield part
        except Unavailable as error:
            raise Unavailable(f"node {node.id}: {error}") from error
