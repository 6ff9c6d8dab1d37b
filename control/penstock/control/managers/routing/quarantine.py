"""Requests that are refused because engines died with them aboard: listed, released, forgotten."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.errors import NotFound
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.suspects import Suspect, released


class Quarantine:
    """What an operator sees of suspects, and may do about them."""

    def __init__(self, cluster: ClusterStore) -> None:
        self._cluster = cluster

    def suspects(self) -> list[Suspect]:
        """All that are not clear again, those that are refused (`is_quarantined`) first."""
        known = [s for s in self._cluster.view().suspects.values() if s.deaths]
        return sorted(known, key=lambda s: (not s.is_quarantined, s.until_ms, s.fingerprint))

    def suspect(self, fingerprint: bytes) -> Suspect:
        """One of them; raises NotFound."""
        found = self._cluster.view().suspects.get(fingerprint)
        if found is None:
            raise NotFound(f"no request with the fingerprint {fingerprint.hex()} is suspected")
        return found

    async def release(self, fingerprint: bytes, write: Write) -> None:
        """Forgets one, at every gateway; raises NotFound and `revision-mismatch`."""
        write.check(self.suspect(fingerprint), f"request {fingerprint.hex()}")
        if write.dry_run:
            return

        def step(view: ClusterView) -> ClusterView:
            return replace(view, suspects=released(view.suspects, fingerprint))

        author = write.author(f"release {fingerprint.hex()[:12]} from quarantine")
        await self._cluster.observe(step, author.what, author.who)
