"""When nodes and gateways were last heard, and what pings came to.

It changes each second and follows from nothing, so it stands beside the view: a heartbeat that says
what the last one said changes the view nowhere and wakes nobody. One thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from penstock.control.state.fleet.replica import NodeId, ReplicaId, Resources
from penstock.control.state.stamp import Stamp

# Pings in a row without an answer: one may have been the head's own fault, or the network's.
TIMEOUTS_ARE_DOUBT = 3


@dataclass(frozen=True, slots=True)
class HeardNode:
    """A node's last heartbeat."""

    at: datetime
    resources: Resources


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


@dataclass(slots=True)
class Liveness:
    """Who was heard, and when."""

    nodes: dict[NodeId, HeardNode] = field(default_factory=dict)
    gateways: dict[str, datetime] = field(default_factory=dict)
    pings: dict[ReplicaId, PingCount] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)  # by "node n1" or "gateway gw-1"
    refused: dict[str, RefusedPeer] = field(default_factory=dict)  # by the same, with its address

    def node_heard_at(self, node_id: NodeId, otherwise: datetime) -> datetime:
        """When a node was last heard; `otherwise` where it never was by this head."""
        heard = self.nodes.get(node_id)
        return heard.at if heard else otherwise

    def in_doubt(self, replica_id: ReplicaId) -> bool:
        """Whether a replica did not answer so often that no single loss explains it."""
        return self.pings.get(replica_id, PingCount()).failed >= TIMEOUTS_ARE_DOUBT

    def refuse(self, who: str, why: str, now: datetime) -> None:
        """Notes that somebody is not let in."""
        known = self.refused.get(who)
        self.refused[who] = RefusedPeer(why, known.since if known else now, now)

    def forget_replica(self, replica_id: ReplicaId) -> None:
        """Begins to count anew: another process answers there now."""
        self.pings.pop(replica_id, None)
