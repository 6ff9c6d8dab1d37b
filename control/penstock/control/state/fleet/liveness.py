"""When nodes and gateways were last heard, and what pings came to.

It changes each second and follows from nothing, so it stands beside the view: a heartbeat that says
what the last one said changes the view nowhere and wakes nobody. These are the values, to read;
`managers/liveness.py` writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.control.state.fleet.memory import ReplicaMemory
from penstock.control.state.fleet.replica import (
    NodeId,
    ProgramStatus,
    Replica,
    ReplicaId,
    Resources,
    WarmPool,
)

# Pings in a row without an answer: one may have been the head's own fault, or the network's.
TIMEOUTS_ARE_DOUBT = 3


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node's last heartbeat."""

    at: datetime
    resources: Resources
    warm_pool: WarmPool | None = None  # an agent that tells of none
    programs: tuple[ProgramStatus, ...] = ()  # that run beside its gateways


@dataclass(frozen=True, slots=True)
class RefusedPeer:
    """A node agent or gateway that asks to be let in, and is not."""

    why: str
    since: datetime
    at: datetime  # it asked last


@dataclass(frozen=True, slots=True)
class PingCount:
    """Pings in a row that a replica did not answer."""

    failed: int = 0
    refused: int = 0  # of these, the latest in a row at which nothing listened
    process: tuple[str, int] = ("", 0)  # address and pid of whoever did not answer


@dataclass(frozen=True, slots=True)
class Liveness:
    """Who was heard, and when."""

    nodes: Mapping[NodeId, ObservedNode] = field(default_factory=dict)
    gateways: Mapping[str, datetime] = field(default_factory=dict)
    pings: Mapping[ReplicaId, PingCount] = field(default_factory=dict)
    refused: Mapping[str, RefusedPeer] = field(default_factory=dict)  # by who, and at what address

    def node_observed_at(self, node_id: NodeId, otherwise: datetime) -> datetime:
        """When a node was last heard; `otherwise` where it never was by this head."""
        observed = self.nodes.get(node_id)
        return observed.at if observed else otherwise

    def memory_of_replicas(self) -> Mapping[str, ReplicaMemory]:
        """What replicas took when their nodes were last heard, by their ids."""
        resources = (observed.resources for observed in self.nodes.values())
        return {each.replica_id: each for told in resources for each in told.replicas}

    def pings_of(self, replica: Replica) -> PingCount:
        """What pings of its present process came to; those of a former one count no more."""
        count = self.pings.get(replica.id, PingCount())
        return count if count.process == process_of(replica) else PingCount()

    def in_doubt(self, replica: Replica) -> bool:
        """Whether a replica did not answer so often that no single loss explains it."""
        return self.pings_of(replica).failed >= TIMEOUTS_ARE_DOUBT


def process_of(replica: Replica) -> tuple[str, int]:
    """What tells a replica's process from the one before it."""
    return replica.status.address, replica.status.pid
