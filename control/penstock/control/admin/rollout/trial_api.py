"""Trying a deployment with one small real request."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.trial_models import TrialModel
from penstock.control.admin.writes import Change
from penstock.control.managers.rollout.trials import TrialManager


def trial_api(trials: TrialManager) -> APIRouter:
    """The verb, on the deployments' paths."""
    router = resources("/deployments", tag="deployments")

    @router.post("/{name}/test")
    async def try_deployment(name: str, write: Change) -> TrialModel:
        """Sends one small real request to a ready replica, past admission: a provider charges for
        it, and no budget or usage counts it; a dry run sends none. 409 where there is none to be
        ready or nothing to ask, 503 where none is ready, 502 for an error that the replica answers
        with, 504 where it takes too long."""
        return TrialModel.of(await trials.run(name, write))

    return router
