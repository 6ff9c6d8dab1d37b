"""Revisions of a deployment: listed, gone back to, made anew."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.deployment_settings import SPECS, with_roles_of
from penstock.control.admin.rollout.deployments_api import (
    Changes,
    DeploymentsApi,
    Rolls,
    check_code,
)
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.admin.rollout.revision_models import (
    RevisionModel,
    RollbackModel,
    SettingsChangeModel,
)
from penstock.control.declared.fields import flat, grouped
from penstock.control.errors import InvalidInput
from penstock.control.managers.rollout.specs import check_program_fits, check_ways_end
from penstock.control.managers.write import digest_tag
from penstock.control.state.adapters.bases import check_aliases_fit
from penstock.control.state.canary.revisions import begun, check_plan, with_one_replaced
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, paused, restarted, resumed
from penstock.control.state.rollout.evidence import check_again, check_change, check_shares
from penstock.control.state.rollout.placing import specified, tried_anew
from penstock.control.state.rollout.revision import Origin, revision_of, to_undo_to
from penstock.control.state.rollout.settings_past import settings_at


class RevisionsApi:
    """The handlers below /deployments/{name}; their docstrings are the API's documents."""

    def __init__(self, deployments: DeploymentsApi) -> None:
        self._deployments = deployments

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/deployments/{name}", tag="deployments")
        router.get("/revisions")(self.list_revisions)
        router.get("/revisions/{number}")(self.get_revision)
        router.get("/settings")(self.list_settings)
        router.post("/rollback")(self.roll_back)
        router.post("/restart")(self.restart)
        router.post("/pause")(self.pause)
        router.post("/resume")(self.resume)
        return router

    async def list_revisions(self, name: str, _: Viewer, page: Paged) -> list[RevisionModel]:
        """The revisions that are kept, newest first."""
        deployment = self._deployments.known(name)
        found = page.along(reversed(deployment.revisions), lambda each: str(each.number))
        return [RevisionModel.of(deployment, each) for each in found]

    async def get_revision(
        self, name: str, number: int, _: Viewer, response: Response
    ) -> RevisionModel:
        """One revision."""
        deployment = self._deployments.known(name)
        shown = RevisionModel.of(deployment, revision_of(deployment.revisions, number))
        response.headers["etag"] = digest_tag(shown.model_dump())
        return shown

    async def roll_back(
        self, name: str, write: Rolls, body: RollbackModel | None = None
    ) -> DeploymentModel:
        """Makes the deployment of an earlier revision's template again, under a new number, and
        all else stays as it is; or its settings as they were, and all else stays."""
        if body and body.settings is not None:
            return await self._settings_back(name, write, body.settings, body.revision)
        number = body.revision if body else None

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            past = known.revisions
            back = to_undo_to(past) if number is None else revision_of(past, number)
            spec = replace(known.spec, template=back.template)
            check_code(write, known, spec)
            check_program_fits(view, known, spec)
            check_aliases_fit(view, spec)
            origin = Origin(write.who, write.reason or f"back to revision {back.number}")
            now = self._deployments.now()
            view = with_one_replaced(specified(view, known, spec, now, origin), known, now)
            check_change(view, known, now)
            return view

        to = f"revision {number}" if number else "the last that served"
        return await self._deployments.change(
            name, step, write, f"roll deployment {name} back to {to}"
        )

    async def list_settings(self, name: str, _: Viewer, page: Paged) -> list[SettingsChangeModel]:
        """The changes of settings that are kept, newest first: those that took no new replicas."""
        past = reversed(self._deployments.known(name).settings_past)
        return [SettingsChangeModel.drawn(e) for e in page.along(past, lambda each: each.number)]

    async def _settings_back(
        self, name: str, write: Changes, number: int, revision: int | None
    ) -> DeploymentModel:
        if revision is not None:
            raise InvalidInput("revision and settings are both given: leave one out")

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            then = settings_at(known.settings_past, None if number < 0 else number)
            spec = SPECS.value(with_roles_of(grouped(flat(known.spec) | dict(then))))
            check_code(write, known, spec)
            check_ways_end(view, spec)
            check_plan(view, spec)
            check_program_fits(view, known, spec)
            now = self._deployments.now()
            view = specified(view, known, spec, now, write.origin)
            check_shares(view, known, name, now)
            return view

        to = f"settings {number}" if number >= 0 else "the settings before"
        return await self._deployments.change(
            name, step, write, f"roll deployment {name} back to {to}"
        )

    async def restart(self, name: str, write: Rolls) -> DeploymentModel:
        """Replaces every replica by a new one of the same template, which gets a new number."""

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            origin = Origin(write.who, write.reason or "restart")
            now = self._deployments.now()
            return begun(tried_anew(view, restarted(known, now, origin)), known, now)

        return await self._deployments.change(name, step, write, f"restart deployment {name}")

    async def pause(self, name: str, write: Changes) -> DeploymentModel:
        """Stops a rollout where it is: what runs stays, and what is missing is made of the last
        revision that served."""

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            return view.with_deployment(paused(known, self._deployments.now()))

        return await self._deployments.change(name, step, write, f"pause the rollout of {name}")

    async def resume(self, name: str, write: Rolls) -> DeploymentModel:
        """Goes on with a rollout that was paused; tries a revision that failed once more."""

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            now = self._deployments.now()
            view = begun(tried_anew(view, resumed(known, now)), known, now)
            check_again(view, known, now)
            return view

        return await self._deployments.change(name, step, write, f"resume the rollout of {name}")
