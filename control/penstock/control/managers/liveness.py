"""The table of who was heard, and when: written with each heartbeat and ping, beside the view."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TypeVar

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.liveness import Liveness, ObservedNode, PingCount, RefusedPeer
from penstock.control.state.fleet.replica import NodeId, ReplicaId
from penstock.control.state.stamp import Stamp

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LivenessTable:
    """Who was heard. One thread only; a heartbeat changes one entry and copies none."""

    def __init__(self) -> None:
        self.nodes: dict[NodeId, ObservedNode] = {}
        self.gateways: dict[str, datetime] = {}
        self.pings: dict[ReplicaId, PingCount] = {}
        self.refused: dict[str, RefusedPeer] = {}  # by "node n1 at <address>" or "gateway gw-1"
        self.stamps: dict[str, Stamp] = {}  # by the same, without an address
        self.known = Liveness(  # to read: always as the tables are now
            nodes=MappingProxyType(self.nodes),
            gateways=MappingProxyType(self.gateways),
            pings=MappingProxyType(self.pings),
            refused=MappingProxyType(self.refused),
        )

    def refuse(self, who: str, why: str, now: datetime) -> None:
        """Notes that somebody is not let in."""
        known = self.refused.get(who)
        self.refused[who] = RefusedPeer(why, known.since if known else now, now)

    def keep(self, view: ClusterView, now: datetime, refused_for: timedelta) -> None:
        """Forgets whom the view no longer has, and who has not asked to be let in for so long."""
        _keep(self.nodes, view.nodes)
        _keep(self.gateways, view.gateways)
        _keep(self.pings, view.replicas)
        for who in [who for who, it in self.refused.items() if now - it.at > refused_for]:
            del self.refused[who]


def _keep(table: dict[_Key, _Value], known: Mapping[_Key, object]) -> None:
    for gone in table.keys() - known.keys():
        del table[gone]
