"""What is wrong now, in one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter
from pydantic import BaseModel, Field

from penstock.control.admin.auth import Viewer
from penstock.control.admin.fields import one_of
from penstock.control.state.problems import Problem, ProblemKind


class ProblemModel(BaseModel):
    """One thing that is wrong."""

    kind: str = one_of(*ProblemKind)
    subject: str = Field(description="what it is wrong with")
    text: str = Field(description="for a person: what is wrong, and what to do")


class ClusterStatusModel(BaseModel):
    """How the cluster is."""

    problems: list[ProblemModel] = Field(description="empty: all is well")


def status_api(problems: Callable[[], Sequence[Problem]]) -> APIRouter:
    """For whoever watches the cluster."""
    router = APIRouter(tags=["cluster"])

    @router.get("/status")
    async def get_status(_: Viewer) -> ClusterStatusModel:
        """What an operator has to know before anything else, as `penstock status` shows it."""
        return ClusterStatusModel(
            problems=[
                ProblemModel(kind=it.kind, subject=it.subject, text=it.text) for it in problems()
            ]
        )

    return router
