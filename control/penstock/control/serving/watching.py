"""The watch over a cluster that runs: what happens in it is told, a line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.control.admin.rollout.models import GatewayModel, NodeModel, ReplicaModel
from penstock.control.errors import Refused, Unavailable
from penstock.control.serving.events import Picture, happened


class Cluster(Protocol):
    """What is looked at. Every call may raise `Unavailable` or `Refused`."""

    async def replicas(self) -> list[ReplicaModel]:
        """Every replica."""

    async def nodes(self) -> list[NodeModel]:
        """Every node."""

    async def gateways(self) -> list[GatewayModel]:
        """Every gateway."""


class Watch:
    """Tells what happened since the last look. A head that is away, or does not let us look any
    more, ends nothing: what serves does without it."""

    def __init__(self, cluster: Cluster, tell: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._tell = tell
        self._last: Picture | None = None
        self._refused = False

    async def look(self) -> None:
        """Once."""
        now = await self._picture()
        if self._last is not None and now is not None:
            for line in happened(self._last, now):
                self._tell(line)
        self._last = now or self._last

    async def _picture(self) -> Picture | None:
        cluster = self._cluster
        try:
            picture = Picture(
                await cluster.replicas(), await cluster.nodes(), await cluster.gateways()
            )
        except Unavailable:
            return None
        except Refused as error:
            if not self._refused:
                self._tell(f"what happens is not shown any more, all goes on: {error}")
            self._refused = True
            return None
        self._refused = False
        return picture
