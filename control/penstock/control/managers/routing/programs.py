"""The router programs that node agents are told of, and their texts."""

from __future__ import annotations

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.routing.program import digest_of
from penstock.control.state.routing.program_routes import RouterProgram, router_programs


class Programs:
    """What is to run beside gateways, as the view has it."""

    def __init__(self, cluster: ClusterStore) -> None:
        self._cluster = cluster
        self._of: object = None
        self._wanted: tuple[RouterProgram, ...] = ()

    def wanted(self) -> tuple[RouterProgram, ...]:
        """All of them; each heartbeat asks."""
        view = self._cluster.view()
        if view.deployments is not self._of:
            self._wanted = tuple(router_programs(view, shipped_programs()))
            self._of = view.deployments
        return self._wanted

    def text(self, digest: str) -> str | None:
        """That of a file, or of one that ships, by its digest; None: nobody has it."""
        shipped = {digest_of(text): text for text in shipped_programs().values()}
        return self._cluster.view().programs.get(digest, shipped.get(digest))
