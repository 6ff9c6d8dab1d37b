"""Applying documents, and writing out what there is as documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import APIRouter, Query

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.version import AdapterVersion
from penstock.control.admin.adapters.api import check_source
from penstock.control.admin.adapters.models import NewAdapterModel
from penstock.control.admin.apply.documents import SHAPES, read, validated
from penstock.control.admin.apply.kinds import documents_of, kinds_of
from penstock.control.admin.apply.models import DEPLOYMENT, DocumentsModel, PlanModel
from penstock.control.admin.apply.named_kind import Applier
from penstock.control.admin.auth import Viewer
from penstock.control.admin.resources import resources
from penstock.control.admin.writes import Asked, creates, handing_over, over_canaries
from penstock.control.errors import BadDocuments, Code, Fault, PenstockError
from penstock.control.managers.adapters.versions import AdapterManager
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.rollout.fits import Fits
from penstock.control.managers.write import Write
from penstock.control.state.applying import Options, Plan, Refusals, Said, planned, refusals
from penstock.control.state.canary.owning import owned
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.tokens import Role
from penstock.control.supervision.clock import Clock

SET = "default"
SetName = Annotated[
    str,
    Query(
        pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$",
        description="of the documents that are applied together: what it made it may prune",
    ),
]
Applies = Annotated[Asked, handing_over(over_canaries(creates(Role.OPERATOR)))]
Prune = Annotated[bool, Query(description="delete what the set made and says no longer")]
Force = Annotated[
    bool, Query(description="overwrite what others have set since, and try what has failed")
]


class ApplyApi:
    """The handlers of /apply and /export; their docstrings are the API's documents."""

    def __init__(
        self, cluster: ClusterStore, adapters: AdapterManager, clock: Clock, fits: Fits
    ) -> None:
        self._fits = fits
        self._cluster = cluster
        self._adapters = adapters
        self._clock = clock

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources(tag="documents")
        router.post("/apply")(self.apply)
        router.get("/export")(self.export)
        return router

    async def apply(
        self,
        body: DocumentsModel,
        write: Applies,
        set_name: SetName = SET,
        prune: Prune = False,
        force: Force = False,
    ) -> PlanModel:
        """Makes what the documents say, all of it or nothing, and says what that changes: with
        `dry_run` it says so alone. Fields that a document does not name stay as they are. 422 and
        409 tell each document that is refused, in `faults`. Contents of adapters that are new are
        fetched first, in a dry run too; those that are not registered then are thrown away."""
        documents = await asyncio.to_thread(read, body.documents)
        options = Options(set_name, prune)
        async with AsyncExitStack() as held:
            fetched = await self._fetched(documents, write, options, held)
            by = Applier(write, self._clock.now(), fetched)
            made: list[tuple[ClusterView, Plan]] = []

            def step(view: ClusterView) -> ClusterView:
                plan = _sound(planned(view, documents, kinds_of(by), options))
                if not write.dry_run and not force and (faults := refusals(plan)):
                    raise BadDocuments(faults, Code.CONFLICT)
                if not write.abort_canary and (faults := _owned(view, plan)):
                    raise BadDocuments(faults, Code.CANARY_OWNS)
                made.append((view, plan))
                return plan.view

            what = f"apply {len(documents)} documents of set {set_name}"
            await write.apply_slow(self._cluster, step, what)
        old, plan = made[-1]
        applied = not write.dry_run
        made_or_changed = [each.name for each in plan.steps if each.kind == DEPLOYMENT]
        fits = await self._fits.of_changed(old, plan.view, made_or_changed)
        return await asyncio.to_thread(PlanModel.of, old, plan, fits, set_name, applied=applied)

    async def export(self, caller: Viewer) -> DocumentsModel:
        """What there is, as documents: to apply them changes nothing. Keys, secrets and adapters'
        contents are no part of them."""
        by = Applier(Write(caller.name, caller.role), self._clock.now())
        found = await asyncio.to_thread(documents_of, self._cluster.view().apart(), by)
        return DocumentsModel(documents=found)

    async def _fetched(
        self, documents: Sequence[Said], write: Write, options: Options, held: AsyncExitStack
    ) -> dict[AdapterRef, AdapterVersion]:
        """The versions that are not registered yet, whose contents stay here while `held`. They
        have to fit the deployments that come with them."""
        view = self._cluster.view()
        new = [
            each
            for each in documents
            if each.kind == "adapter" and AdapterRef.parse(each.name) not in view.adapters.versions
        ]
        if not new:
            return {}
        view = view.apart()
        first = [each for each in documents if each.kind == "deployment"]
        by = Applier(write, self._clock.now())
        alone = Options(options.set_name)
        plan = await asyncio.to_thread(planned, view, first, kinds_of(by), alone)
        view = _sound(plan).view
        found = {}
        for said in new:
            try:
                version = await self._fetch(view, said, write, held)
            except PenstockError as error:
                wrong = error.found if isinstance(error, Refusals) else [((), str(error))]
                faults = [Fault(said.index, path, text) for path, text in wrong]
                raise BadDocuments(faults, error.code) from error
            found[version.ref] = version
        return found

    async def _fetch(
        self, view: ClusterView, said: Said, write: Write, held: AsyncExitStack
    ) -> AdapterVersion:
        shape = SHAPES["adapter"]
        model: NewAdapterModel = validated(shape.model, {**said.fields, **shape.key_of(said.name)})
        check_source(write, model.source)
        fetching = self._adapters.fetched(view, model.to_spec(), model.source, write.who)
        return await held.enter_async_context(fetching)


def _owned(view: ClusterView, plan: Plan) -> list[Fault]:
    """Each document that would take something from a canary that goes on."""
    document = {(step.kind, step.name): step.document for step in plan.steps}
    return [
        Fault(document.get((each.kind, each.name), -1), (), str(each))
        for each in owned(view, plan.view)
    ]


def _sound(plan: Plan) -> Plan:
    """The plan, of documents that can be applied. Raises `BadDocuments`."""
    if plan.faults:
        raise BadDocuments(plan.faults)
    return plan
