"""Revisions of a deployment: listed, gone back to, made anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from fastapi import APIRouter, Response

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import DryRun
from penstock.control.admin.preconditions import IfMatch, check_match
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.deployments_api import (
    DeploymentsApi,
    Setter,
    author_of,
    check_code,
)
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.admin.rollout.reason import Reason
from penstock.control.admin.rollout.revision_models import RevisionModel, RollbackModel
from penstock.control.state.adapters.bases import check_aliases_fit
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, paused, restarted, resumed
from penstock.control.state.rollout.placing import specified, tried_anew
from penstock.control.state.rollout.revision import Origin, revision_of, to_undo_to
from penstock.control.store.store import Author


class RevisionsApi:
    """The handlers below /deployments/{name}; their docstrings are the API's documents."""

    def __init__(self, deployments: DeploymentsApi) -> None:
        self._deployments = deployments

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/deployments/{name}", tag="deployments")
        router.get("/revisions")(self.list_revisions)
        router.get("/revisions/{number}")(self.get_revision)
        router.post("/rollback")(self.roll_back)
        router.post("/restart")(self.restart)
        router.post("/pause")(self.pause)
        router.post("/resume")(self.resume)
        return router

    async def list_revisions(self, name: str, _: Viewer) -> list[RevisionModel]:
        """The revisions that are kept, newest first."""
        deployment = self._deployments.known(name)
        return [RevisionModel.of(deployment, each) for each in reversed(deployment.revisions)]

    async def get_revision(self, name: str, number: int, _: Viewer) -> RevisionModel:
        """One revision."""
        deployment = self._deployments.known(name)
        return RevisionModel.of(deployment, revision_of(deployment.revisions, number))

    async def roll_back(
        self,
        name: str,
        caller: Setter,
        response: Response,
        body: RollbackModel | None = None,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Makes the deployment of an earlier revision's template again, under a new number. All
        else stays as it is."""
        number = body.revision if body else None

        def step(view: ClusterView, known: Deployment, now: datetime) -> ClusterView:
            past = known.revisions
            back = to_undo_to(past) if number is None else revision_of(past, number)
            spec = replace(known.spec, template=back.template)
            check_code(caller, known, spec)
            check_aliases_fit(view, spec)
            why = reason or f"back to revision {back.number}"
            return specified(view, known, spec, now, Origin(caller.name, why))

        to = f"revision {number}" if number else "the last that served"
        author = author_of(caller, f"roll deployment {name} back to {to}", reason)
        return await self._changed(name, step, author, response, if_match, dry_run=dry_run)

    async def restart(
        self,
        name: str,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Replaces every replica by a new one of the same template, which gets a new number."""

        def step(view: ClusterView, known: Deployment, now: datetime) -> ClusterView:
            origin = Origin(caller.name, reason or "restart")
            return tried_anew(view, restarted(known, now, origin))

        author = author_of(caller, f"restart deployment {name}", reason)
        return await self._changed(name, step, author, response, if_match, dry_run=dry_run)

    async def pause(
        self,
        name: str,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Stops a rollout where it is: what runs stays, and what is missing is made of the last
        revision that served."""

        def step(view: ClusterView, known: Deployment, now: datetime) -> ClusterView:
            return view.with_deployment(paused(known, now))

        author = author_of(caller, f"pause the rollout of {name}", reason)
        return await self._changed(name, step, author, response, if_match, dry_run=dry_run)

    async def resume(
        self,
        name: str,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Goes on with a rollout that was paused; tries a revision that failed once more."""

        def step(view: ClusterView, known: Deployment, now: datetime) -> ClusterView:
            return tried_anew(view, resumed(known, now))

        author = author_of(caller, f"resume the rollout of {name}", reason)
        return await self._changed(name, step, author, response, if_match, dry_run=dry_run)

    async def _changed(
        self,
        name: str,
        step: Callable[[ClusterView, Deployment, datetime], ClusterView],
        author: Author,
        response: Response,
        if_match: str | None,
        *,
        dry_run: bool,
    ) -> DeploymentModel:
        def checked(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            check_match(known, if_match)
            return step(view, known, self._deployments.now())

        return await self._deployments.changed(name, checked, author, response, dry_run=dry_run)
