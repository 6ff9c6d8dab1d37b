"""Deployments: create, change, scale, list, delete."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Response, status

from penstock.control.admin.auth import Operator, Viewer
from penstock.control.admin.models import DeploymentModel, NewDeployment, ScaleModel, SpecModel
from penstock.control.errors import DeploymentExists, InvalidInput, RevisionMismatch
from penstock.control.managers.clock import Clock
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView
from penstock.control.state.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
    changed,
    created,
)
from penstock.control.store.store import Author

IfMatch = Annotated[
    str | None,
    Header(description="ETag or generation that the caller read; 412 where it has changed"),
]


class DeploymentsApi:
    """The handlers of /deployments; their docstrings are the API's documents."""

    def __init__(self, keeper: Keeper, clock: Clock) -> None:
        self._keeper = keeper
        self._clock = clock

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = APIRouter(prefix="/deployments", tags=["deployments"])
        router.get("")(self.list_deployments)
        router.post("", status_code=status.HTTP_201_CREATED)(self.create_deployment)
        router.get("/{name}")(self.get_deployment)
        router.put("/{name}")(self.put_deployment)
        router.post("/{name}/scale")(self.scale_deployment)
        router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_deployment)
        return router

    async def list_deployments(self, _: Viewer) -> list[DeploymentModel]:
        """All deployments, by name."""
        view = self._keeper.cluster.view()
        return [DeploymentModel.of(view, d) for _, d in sorted(view.deployments.items())]

    async def create_deployment(self, body: NewDeployment, caller: Operator) -> DeploymentModel:
        """Creates a deployment; 409 where the name is taken."""
        spec = body.to_spec(body.name)

        def step(view: ClusterView) -> ClusterView:
            if spec.name in view.deployments:
                raise DeploymentExists(
                    f"deployment {spec.name!r} exists: change it with PUT, or delete it first"
                )
            return self._with_new(view, spec)

        view = await self._keeper.desire(
            step, Author(caller.name, f"create deployment {spec.name}")
        )
        return _shown(view, spec.name)

    async def get_deployment(self, name: str, _: Viewer) -> DeploymentModel:
        """One deployment."""
        return _shown(self._keeper.cluster.view(), name)

    async def put_deployment(
        self,
        name: str,
        body: SpecModel,
        caller: Operator,
        response: Response,
        if_match: IfMatch = None,
    ) -> DeploymentModel:
        """Replaces a deployment's spec whole, or creates it (201)."""
        spec = body.to_spec(name)

        def step(view: ClusterView) -> ClusterView:
            known = view.deployments.get(spec.name)
            _check_match(known, if_match)
            if known is None:
                response.status_code = status.HTTP_201_CREATED
                return self._with_new(view, spec)
            return view.with_deployment(changed(known, spec, self._clock.now()))

        view = await self._keeper.desire(step, Author(caller.name, f"put deployment {name}"))
        return _shown(view, name)

    async def scale_deployment(
        self, name: str, body: ScaleModel, caller: Operator, if_match: IfMatch = None
    ) -> DeploymentModel:
        """Changes only the number of replicas."""

        def step(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            _check_match(known, if_match)
            spec = replace(known.spec, replicas=body.replicas)
            return view.with_deployment(changed(known, spec, self._clock.now()))

        what = f"scale deployment {name} to {body.replicas}"
        return _shown(await self._keeper.desire(step, Author(caller.name, what)), name)

    async def delete_deployment(
        self, name: str, caller: Operator, if_match: IfMatch = None
    ) -> None:
        """Deletes a deployment; its replicas drain and stop."""

        def step(view: ClusterView) -> ClusterView:
            _check_match(view.deployment(name), if_match)
            return view.without_deployment(DeploymentName(name))

        await self._keeper.desire(step, Author(caller.name, f"delete deployment {name}"))

    def _with_new(self, view: ClusterView, spec: DeploymentSpec) -> ClusterView:
        uid = secrets.token_hex(16)
        return view.with_deployment(created(spec, self._clock.now(), uid=uid))


def _shown(view: ClusterView, name: str) -> DeploymentModel:
    return DeploymentModel.of(view, view.deployment(name))


def etag(deployment: Deployment) -> str:
    """Names one generation of one deployment: a namesake made later has another."""
    return f'"{deployment.generation}-{deployment.uid}"'


def _check_match(known: Deployment | None, if_match: str | None) -> None:
    if if_match is None:
        return
    wanted = if_match.strip().removeprefix("W/").strip('"')
    if wanted == "*" and known is not None:
        return
    generation, _, uid = wanted.partition("-")
    if wanted != "*" and not (generation.isascii() and generation.isdigit()):
        raise InvalidInput(
            f"If-Match is {if_match!r}: give the deployment's ETag, or its generation, such as 3"
        )
    if (
        known is None
        or generation.lstrip("0") != str(known.generation)
        or uid not in ("", known.uid)
    ):
        found = f"at generation {etag(known)}" if known else "not there"
        raise RevisionMismatch(f"the deployment is {found}, not {wanted}: read it again")
