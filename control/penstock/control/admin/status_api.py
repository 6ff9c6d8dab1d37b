"""What is wrong now, in one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter

from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.status_models import ClusterStatusModel, ProblemModel
from penstock.control.state.problems import Problem


def status_api(problems: Callable[[], Sequence[Problem]]) -> APIRouter:
    """For whoever watches the cluster."""
    router = resources(tag="cluster")

    @router.get("/status")
    async def get_status(_: Viewer) -> ClusterStatusModel:
        """What an operator has to know before anything else, as `penstock status` shows it."""
        return ClusterStatusModel(
            problems=[
                ProblemModel(kind=it.kind, subject=it.subject, text=it.text) for it in problems()
            ]
        )

    return router
