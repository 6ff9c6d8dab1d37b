"""Deployments: create, change, scale, list, delete."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Operator, Viewer, sets
from penstock.control.admin.documents import or_created
from penstock.control.admin.parameters import DryRun, Paged
from penstock.control.admin.preconditions import (
    IfMatch,
    IfNoneMatch,
    check_match,
    check_put,
    etag,
)
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.deployment_settings import SettingsModel
from penstock.control.admin.rollout.models import (
    DeploymentModel,
    NewDeployment,
    ScaleModel,
    SpecModel,
)
from penstock.control.admin.rollout.reason import Reason
from penstock.control.errors import Code, PenstockError, Refused
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.state.adapters.bases import check_aliases_fit
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
    created,
)
from penstock.control.state.rollout.engine_args import runs_model_code
from penstock.control.state.rollout.placing import specified
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.degrading import check_no_circle
from penstock.control.state.tenancy.spend import Spend
from penstock.control.state.tenancy.tokens import Role, Token
from penstock.control.store.store import Author
from penstock.control.supervision.clock import Clock

Setter = Annotated[Token, sets(DeploymentSpec)]


class DeploymentsApi:
    """The handlers of /deployments; their docstrings are the API's documents."""

    def __init__(
        self, cluster: ClusterStore, clock: Clock, traffic: Traffic, spent: Callable[[str], Spend]
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._traffic = traffic
        self._spent = spent  # today, by deployment

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/deployments", tag="deployments")
        router.get("")(self.list_deployments)
        router.post("", status_code=status.HTTP_201_CREATED)(self.create_deployment)
        router.get("/{name}")(self.get_deployment)
        router.put("/{name}", responses=or_created(DeploymentModel))(self.put_deployment)
        router.post("/{name}/scale")(self.scale_deployment)
        router.patch("/{name}/settings")(self.change_settings)
        router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_deployment)
        return router

    async def list_deployments(self, _: Viewer, page: Paged) -> list[DeploymentModel]:
        """Deployments, by name."""
        view = self._cluster.view()
        return [self._model(view, d) for d in page.of(view.deployments)]

    async def create_deployment(
        self,
        body: NewDeployment,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Creates a deployment; 409 where the name is taken."""
        spec = body.to_spec(body.name)

        def step(view: ClusterView) -> ClusterView:
            check_code(caller, None, spec)
            if spec.name in view.deployments:
                raise PenstockError(
                    f"deployment {spec.name!r} exists: change it with PUT, or delete it first",
                    Code.DEPLOYMENT_EXISTS,
                )
            return self._with_new(view, spec, Origin(caller.name, reason))

        author = author_of(caller, f"create deployment {spec.name}", reason)
        response.headers["location"] = _location(spec.name)
        view = await self._apply(step, author, dry_run=dry_run)
        return self._shown(view, spec.name, response)

    async def get_deployment(self, name: str, _: Viewer, response: Response) -> DeploymentModel:
        """One deployment."""
        return self._shown(self._cluster.view(), name, response)

    async def put_deployment(
        self,
        name: str,
        body: SpecModel,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Replaces a deployment's spec whole, or creates it (201)."""
        spec = body.to_spec(name)

        def step(view: ClusterView) -> ClusterView:
            known = view.deployments.get(spec.name)
            check_put(known, if_match, if_none_match, f"deployment {name!r}")
            check_code(caller, known, spec)
            if known is None:
                response.status_code = status.HTTP_201_CREATED
                response.headers["location"] = _location(name)
                return self._with_new(view, spec, Origin(caller.name, reason))
            _check_ways_end(view, spec)
            check_aliases_fit(view, spec)
            return specified(view, known, spec, self._clock.now(), Origin(caller.name, reason))

        author = author_of(caller, f"put deployment {name}", reason)
        return await self.changed(name, step, author, response, dry_run=dry_run)

    async def scale_deployment(
        self,
        name: str,
        body: ScaleModel,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Changes only the number of replicas."""

        def step(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            check_match(known, if_match)
            spec = replace(known.spec, replicas=body.replicas)
            return specified(view, known, spec, self._clock.now(), Origin(caller.name, reason))

        author = author_of(caller, f"scale deployment {name} to {body.replicas}", reason)
        return await self.changed(name, step, author, response, dry_run=dry_run)

    async def change_settings(
        self,
        name: str,
        body: SettingsModel,
        caller: Setter,
        response: Response,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> DeploymentModel:
        """Changes the settings that the body names, and no other; no replica is replaced."""

        def step(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            check_match(known, if_match)
            spec = body.over(known.spec)
            _check_ways_end(view, spec)
            return specified(view, known, spec, self._clock.now(), Origin(caller.name, reason))

        what = f"set {', '.join(sorted(body.model_fields_set)) or 'nothing'} of deployment {name}"
        author = author_of(caller, what, reason)
        return await self.changed(name, step, author, response, dry_run=dry_run)

    async def delete_deployment(
        self,
        name: str,
        caller: Operator,
        reason: Reason = "",
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> None:
        """Deletes a deployment; its replicas drain and stop."""

        def step(view: ClusterView) -> ClusterView:
            check_match(view.deployment(name), if_match)
            return view.without_deployment(DeploymentName(name))

        author = author_of(caller, f"delete deployment {name}", reason)
        await self._apply(step, author, dry_run=dry_run)

    def known(self, name: str) -> Deployment:
        """The deployment as it is now; raises `unknown-deployment`."""
        return self._cluster.view().deployment(name)

    def now(self) -> datetime:
        """What a change that is made now says of when it was."""
        return self._clock.now()

    async def changed(
        self,
        name: str,
        step: Callable[[ClusterView], ClusterView],
        author: Author,
        response: Response,
        *,
        dry_run: bool,
    ) -> DeploymentModel:
        """Makes a change to a deployment, or tries it, and shows what comes of it."""
        return self._shown(await self._apply(step, author, dry_run=dry_run), name, response)

    async def _apply(
        self, step: Callable[[ClusterView], ClusterView], author: Author, *, dry_run: bool
    ) -> ClusterView:
        if dry_run:
            return step(self._cluster.view())
        return await self._cluster.apply(step, author)

    def _shown(self, view: ClusterView, name: str, response: Response) -> DeploymentModel:
        deployment = view.deployment(name)
        response.headers["etag"] = etag(deployment)
        return self._model(view, deployment)

    def _model(self, view: ClusterView, deployment: Deployment) -> DeploymentModel:
        traffic = self._traffic.of(view, deployment.spec.name, self._clock.steady())
        return DeploymentModel.of(view, deployment, traffic, self._spent(deployment.spec.name))

    def _with_new(self, view: ClusterView, spec: DeploymentSpec, origin: Origin) -> ClusterView:
        _check_ways_end(view, spec)
        uid = secrets.token_hex(16)
        return view.with_deployment(created(spec, self._clock.now(), uid=uid, origin=origin))


def author_of(caller: Token, what: str, reason: str) -> Author:
    """What the audit trail says of a change."""
    return Author(caller.name, f"{what}: {reason}" if reason else what)


def check_code(caller: Token, known: Deployment | None, spec: DeploymentSpec) -> None:
    """Raises `forbidden` where code of a model is to run anew, and the caller may not say so."""
    new = known is None or known.spec.template != spec.template
    if new and runs_model_code(spec.template) and not caller.role.includes(Role.ADMIN):
        raise Refused(
            f"engine_args of {spec.name!r} run code that comes with a model: this needs a token of "
            f"role {Role.ADMIN}, {caller.name!r} has role {caller.role}",
            Code.FORBIDDEN,
        )


def _check_ways_end(view: ClusterView, spec: DeploymentSpec) -> None:
    """Raises `InvalidSpec` where fallbacks would lead from this deployment back to it."""
    named = {str(name): each.spec.degrading.fallbacks for name, each in view.deployments.items()}
    check_no_circle(spec.name, {**named, spec.name: spec.degrading.fallbacks})


def _location(name: str) -> str:
    return f"/admin/v1/deployments/{name}"
