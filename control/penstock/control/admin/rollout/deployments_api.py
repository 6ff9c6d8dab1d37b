"""Deployments: create, change, scale, list, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.documents import or_created
from penstock.control.admin.fit_models import MemoryFitModel
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.deployment_settings import SettingsModel
from penstock.control.admin.rollout.models import (
    DeploymentModel,
    NewDeployment,
    ScaleModel,
    SpecModel,
)
from penstock.control.admin.rollout.program_models import ProgramStatusModel
from penstock.control.admin.writes import (
    Asked,
    OverCanaries,
    changes,
    creates,
    handing_over,
    over_canaries,
    puts,
    tagged,
)
from penstock.control.errors import Code, PenstockError, Refused
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.rollout.fits import Fits
from penstock.control.managers.rollout.specs import (
    check_program_fits,
    check_ways_end,
    put_spec,
)
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.managers.write import Write
from penstock.control.state.canary.revisions import check_plan
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
)
from penstock.control.state.rollout.engine_args import runs_model_code
from penstock.control.state.rollout.engines import check_of_people
from penstock.control.state.rollout.evidence import check_shares
from penstock.control.state.rollout.handing_over import asked_at_once
from penstock.control.state.rollout.lease import Owner
from penstock.control.state.rollout.placing import specified
from penstock.control.state.routing.limits import Sharing
from penstock.control.state.routing.program import NO_TEXTS, Texts
from penstock.control.state.tenancy.spend import Spend
from penstock.control.state.tenancy.tokens import Role
from penstock.control.supervision.clock import Clock

Creates = Annotated[Asked, creates(DeploymentSpec)]
Puts = Annotated[Asked, handing_over(over_canaries(puts(DeploymentSpec)))]
Scales = Annotated[Asked, handing_over(changes(DeploymentSpec))]
Rolls = Annotated[Asked, handing_over(over_canaries(changes(DeploymentSpec)))]
Changes = Annotated[Asked, over_canaries(changes(DeploymentSpec))]

OwnedBy = Annotated[
    Owner | None, Query(description="people: without engines; engines: these alone")
]
Step = Callable[[ClusterView, Deployment], ClusterView]


class DeploymentsApi:
    """The handlers of /deployments; their docstrings are the API's documents."""

    def __init__(
        self,
        cluster: ClusterStore,
        clock: Clock,
        traffic: Traffic,
        spent: Callable[[str], Spend],
        fits: Fits,
    ) -> None:
        self._fits = fits
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

    async def list_deployments(
        self, _: Viewer, page: Paged, owner: OwnedBy = None
    ) -> list[DeploymentModel]:
        """Deployments, by name; engines are among them."""
        view = self._cluster.view()
        named = {n: d for n, d in view.deployments.items() if owner in (None, d.owner)}
        return [self._model(view, d) for d in page.of(named)]

    async def create_deployment(self, body: NewDeployment, write: Creates) -> DeploymentModel:
        """Creates a deployment; 409 where the name is taken."""
        spec = body.to_spec(body.name)

        def step(view: ClusterView) -> ClusterView:
            check_code(write, None, spec)
            if spec.name in view.deployments:
                raise PenstockError(
                    f"deployment {spec.name!r} exists: change it with PUT, or delete it first",
                    Code.DEPLOYMENT_EXISTS,
                )
            return put_spec(view, spec, self._clock.now(), write.origin)

        view = await write.apply(self._cluster, step, f"create deployment {spec.name}")
        return await self._told(view, spec.name, write, _location(spec.name))

    async def get_deployment(self, name: str, _: Viewer, response: Response) -> DeploymentModel:
        """One deployment."""
        tagged(response, self.known(name))
        view = self._cluster.view()
        return self._model(view, self.known(name), view.programs)

    async def put_deployment(self, name: str, body: SpecModel, write: Puts) -> DeploymentModel:
        """Replaces a deployment's spec whole, or creates it (201)."""
        spec = body.to_spec(name)
        made_at = ""

        def step(view: ClusterView) -> ClusterView:
            nonlocal made_at
            known = view.deployments.get(spec.name)
            write.check(known, f"deployment {name!r}")
            check_code(write, known, spec)
            if known is None:
                made_at = _location(name)
            view = put_spec(view, spec, self._clock.now(), write.origin)
            return asked_at_once(view, name) if write.hand_over else view

        view = await write.apply(self._cluster, step, f"put deployment {name}")
        return await self._told(view, name, write, made_at)

    async def scale_deployment(self, name: str, body: ScaleModel, write: Scales) -> DeploymentModel:
        """Changes only the number of replicas."""

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            check_of_people(known)
            check_scalable(known)
            spec = replace(known.spec, replicas=body.replicas)
            return specified(view, known, spec, self._clock.now(), write.origin)

        return await self.change(name, step, write, f"scale deployment {name} to {body.replicas}")

    async def change_settings(
        self, name: str, body: SettingsModel, write: Changes
    ) -> DeploymentModel:
        """Changes the settings that the body names, and no other; no replica is replaced."""

        def step(view: ClusterView, known: Deployment) -> ClusterView:
            spec = body.over(known.spec)
            check_code(write, known, spec)
            check_ways_end(view, spec)
            check_plan(view, spec)
            check_program_fits(view, known, spec)
            now = self._clock.now()
            view = specified(view, known, spec, now, write.origin)
            check_shares(view, known, name, now)
            return view

        what = f"set {', '.join(sorted(body.model_fields_set)) or 'nothing'} of deployment {name}"
        return await self.change(name, step, write, what)

    async def delete_deployment(self, name: str, write: OverCanaries) -> None:
        """Deletes a deployment; its replicas drain and stop."""

        def step(view: ClusterView) -> ClusterView:
            write.check(view.deployment(name), f"deployment {name!r}")
            return view.without_deployment(DeploymentName(name))

        await write.apply(self._cluster, step, f"delete deployment {name}")

    def known(self, name: str) -> Deployment:
        """The deployment as it is now; raises `unknown-deployment`."""
        return self._cluster.view().deployment(name)

    def now(self) -> datetime:
        """What a change that is made now says of when it was."""
        return self._clock.now()

    async def change(self, name: str, step: Step, write: Asked, what: str) -> DeploymentModel:
        """Makes a change to a deployment that is there, or tries it, and shows what comes of it."""

        def checked(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            write.check(known, f"deployment {name!r}")
            view = step(view, known)
            return asked_at_once(view, name) if write.hand_over else view

        return await self._told(await write.apply(self._cluster, checked, what), name, write)

    async def _told(
        self, view: ClusterView, name: str, write: Asked, made_at: str = ""
    ) -> DeploymentModel:
        deployment = view.deployment(name)
        write.tell(deployment, made_at)
        shown = self._model(view, deployment)
        if write.dry_run:
            fits = await self._fits.of_changed(self._cluster.view(), view, [name])
            shown.memory = MemoryFitModel.drawn(fits[name]) if name in fits else shown.memory
        return shown

    def _model(
        self, view: ClusterView, deployment: Deployment, texts: Texts = NO_TEXTS
    ) -> DeploymentModel:
        """With the text of its program, where `texts` have it: answers to changes are stored."""
        traffic = self._traffic.of(view, deployment.spec.name, self._clock.steady())
        spent = self._spent(deployment.spec.name)
        shown = DeploymentModel.of(view, deployment, traffic, spent, texts)
        live = self._cluster.liveness.known
        shown.status.program = ProgramStatusModel.of(view, live, deployment, self.now())
        return shown


def check_code(write: Write, known: Deployment | None, spec: DeploymentSpec) -> None:
    """Raises `forbidden` where code of a model, or a program, is to run anew, and the caller may
    not say so."""
    new = known is None or known.spec.template != spec.template
    if new and runs_model_code(spec.template) and not write.role.includes(Role.ADMIN):
        raise Refused(
            f"engine_args of {spec.name!r} run code that comes with a model: this needs a token of "
            f"role {Role.ADMIN}, {write.who!r} has role {write.role}",
            Code.FORBIDDEN,
        )
    before = known.spec.sharing if known else Sharing()
    if spec.sharing.runs_another_program(before) and not write.role.includes(Role.ADMIN):
        raise Refused(
            f"to set the program of {spec.name!r}, what it takes and what it sees needs a token of"
            f" role {Role.ADMIN}, {write.who!r} has role {write.role}",
            Code.FORBIDDEN,
        )


def check_scalable(known: Deployment) -> None:
    """Raises `conflict` where roles say how many replicas there are."""
    if (roles := known.spec.sharing.roles).total:
        raise PenstockError(
            f"{known.spec.name!r} has roles, {roles}: set roles.prefill and roles.decode, and"
            " replicas is their sum",
            Code.CONFLICT,
        )


def _location(name: str) -> str:
    return f"/admin/v1/deployments/{name}"
