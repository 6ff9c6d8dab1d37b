"""How a deployment's router program fares, as the admin API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.liveness import Liveness
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.routing.program_reports import (
    asks_program,
    program_starts,
    programs_at,
    programs_on,
)


class ProgramFailureModel(Shown):
    """Requests that the program did not place, for one reason."""

    reason: str = Field(description="slow, raised, nonsense, dead, no_place, ...")
    count: int
    last: str = Field(description="what was said last")


class ProgramAtModel(Shown):
    """What came of asking it at one gateway, since that began."""

    gateway: str
    digest: str
    unavailable: str = Field(description="why it is not asked now; empty: it is")
    asked: int
    decided: int
    failed: int = Field(description="these went by power_of_two")
    failures: list[ProgramFailureModel]
    moved_tokens: int
    moved_bytes: int


class ProgramOnModel(Shown):
    """Its process on one node, as its agent said last."""

    node: str
    digest: str
    running: bool
    restarts: int
    last_error: str


class ProgramStatusModel(Shown):
    """Where it runs and is asked."""

    name: str = Field(description="of one that ships, its module's, or its file's digest")
    gateways: list[ProgramAtModel] = Field(description="that report, and know of it")
    nodes: list[ProgramOnModel] = Field(description="that run it, or try to")
    starting: bool = Field(description="its processes begin just now")

    @classmethod
    def of(
        cls, view: ClusterView, live: Liveness, deployment: Deployment, now: datetime
    ) -> ProgramStatusModel | None:
        """As the API shows it; None: nobody is to ask one."""
        program = deployment.spec.sharing.program
        if program is None or not asks_program(deployment):
            return None
        at = programs_at(view, deployment)
        return cls(
            name=program.known_as,
            gateways=[ProgramAtModel.drawn(each.counts, gateway=each.gateway) for each in at],
            nodes=[ProgramOnModel.drawn(each) for each in programs_on(live, deployment)],
            starting=program_starts(live, deployment, now),
        )
