"""Adapter versions: register, promote, retire, delete, evidence, where they are."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi import APIRouter, Request, Response, status

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import AdapterVersion
from penstock.control.adapter_sources.upload import received_upload
from penstock.control.admin.adapters.bodies import REGISTRATION, is_upload, parsed, pieces_of
from penstock.control.admin.adapters.models import (
    AdapterManifestModel,
    AdapterModel,
    AdapterPolicyModel,
    EvidenceModel,
    NewAdapterModel,
    NewEvidenceModel,
    PromoteModel,
    WhereModel,
)
from penstock.control.admin.auth import Viewer, check_role
from penstock.control.admin.documents import or_created
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.writes import Asked, Change, Create, OverCanaries, tagged
from penstock.control.errors import NotFound
from penstock.control.managers.adapters.versions import AdapterManager
from penstock.control.managers.write import Write
from penstock.control.state.adapters.whereabouts import whereabouts
from penstock.control.state.tenancy.tokens import Role

_ONE = "/{adapter}"


class AdaptersApi:
    """The handlers of /adapters; their docstrings are the API's documents."""

    def __init__(self, adapters: AdapterManager, scratch: Path) -> None:
        """`scratch`: where uploads lie while they come."""
        self._adapters = adapters
        self._scratch = scratch

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/adapters", tag="adapters")
        router.get("")(self.list_adapters)
        router.post("", responses=or_created(AdapterModel), openapi_extra=REGISTRATION)(
            self.register_adapter
        )
        router.get(_ONE)(self.get_adapter)
        router.delete(_ONE, status_code=status.HTTP_204_NO_CONTENT)(self.delete_adapter)
        router.post(_ONE + "/promote")(self.promote_adapter)
        router.post(_ONE + "/retire")(self.retire_adapter)
        router.get(_ONE + "/replicas")(self.adapter_replicas)
        router.get(_ONE + "/evidence")(self.list_evidence)
        router.put(_ONE + "/evidence", status_code=status.HTTP_201_CREATED)(self.put_evidence)
        router.get(_ONE + "/evidence/{evidence_id}")(self.get_evidence)
        return router

    async def list_adapters(
        self, _: Viewer, page: Paged, name: str | None = None, family: str | None = None
    ) -> list[AdapterModel]:
        """All versions, or those of a name or a family, by name@version."""
        view = self._adapters.view
        found = {
            str(ref): version
            for ref, version in view.adapters.versions.items()
            if name in (None, ref.name) and family in (None, version.manifest.family)
        }
        return [AdapterModel.of(view, version) for version in page.of(found)]

    async def register_adapter(self, request: Request, write: Create) -> AdapterModel:
        """Registers a version, from a source that the head reads or of files that are sent along:
        checked and stored, or refused with nothing kept. The same bytes again under the same name
        and version: 200, and nothing new; other bytes: 409."""
        if is_upload(request):
            return self._shown(await self._uploaded(request, write), write)
        body = parsed(NewAdapterModel, await request.body())
        check_source(write, body.source)
        made = await self._adapters.register(body.to_spec(), body.source, write)
        return self._shown(made, write)

    async def _uploaded(self, request: Request, write: Write) -> tuple[AdapterVersion, bool]:
        async with received_upload(
            pieces_of(request),
            request.headers["content-type"],
            scratch=self._scratch,
            max_bytes=FamilyLimits().max_bytes,
        ) as upload:
            named = {key: value for key, value in upload.manifest.items() if key != "sha256"}
            manifest = parsed(AdapterManifestModel, json.dumps(named).encode())
            spec = manifest.to_spec()
            return await self._adapters.register_upload(spec, upload.directory, write)

    async def get_adapter(self, adapter: str, _: Viewer, response: Response) -> AdapterModel:
        """One version, by name@version."""
        view = self._adapters.view
        tagged(response, version := view.adapters.version(adapter))
        return AdapterModel.of(view, version)

    async def delete_adapter(self, adapter: str, write: OverCanaries) -> None:
        """Deletes a version for good: its name and version are never given again. 409 while an
        alias names it."""
        await self._adapters.remove(adapter, write)

    async def promote_adapter(
        self, adapter: str, body: PromoteModel, write: Change
    ) -> AdapterModel:
        """Brings a version forward; 409 where the policy asks for evidence that is not there."""
        write.tell(promoted := await self._adapters.promote(adapter, body.state, write))
        return AdapterModel.of(self._adapters.view, promoted)

    async def retire_adapter(self, adapter: str, write: OverCanaries) -> AdapterModel:
        """Nobody may ask for the version any more; 409 while an alias names it."""
        write.tell(retired := await self._adapters.retire(adapter, write))
        return AdapterModel.of(self._adapters.view, retired)

    async def adapter_replicas(self, adapter: str, _: Viewer, page: Paged) -> list[WhereModel]:
        """Where a version is: on every replica that could hold it, by that replica's own word."""
        view = self._adapters.view
        found = whereabouts(view, view.adapters.version(adapter))
        return [WhereModel.drawn(each) for each in page.along(found, lambda it: it.replica)]

    async def list_evidence(self, adapter: str, _: Viewer, page: Paged) -> list[EvidenceModel]:
        """What evaluations found of a version, the newest first."""
        adapters = self._adapters.view.adapters
        found = adapters.evidence_of(adapters.version(adapter).ref)
        return [EvidenceModel.of(each) for each in page.along(found, lambda it: it.id)]

    async def put_evidence(
        self, adapter: str, body: NewEvidenceModel, write: Change
    ) -> EvidenceModel:
        """Keeps what an evaluation found, beside what others did; the newest of a kind counts. 409
        where it was found of other bytes or on another model."""
        told = await self._adapters.add_evidence(adapter, body.to_evidence(), body.report, write)
        write.tell(told)
        return EvidenceModel.of(told)

    async def get_evidence(
        self, adapter: str, evidence_id: str, _: Viewer, response: Response
    ) -> EvidenceModel:
        """One finding with its report."""
        adapters = self._adapters.view.adapters
        told = adapters.evidence.get(evidence_id)
        if told is None or told.ref != adapters.version(adapter).ref:
            raise NotFound(f"{adapter} has no evidence {evidence_id!r}")
        tagged(response, told)
        return EvidenceModel.of(told, await self._adapters.report(told.report))

    def _shown(self, made: tuple[AdapterVersion, bool], write: Asked) -> AdapterModel:
        version, is_new = made
        write.tell(version, f"/admin/v1/adapters/{version.ref}" if is_new else "")
        return AdapterModel.of(self._adapters.view, version)


def check_source(write: Write, source: str) -> None:
    """Raises `forbidden` for a path on the head's machine: whoever names one could look around on
    its disk, so that takes role admin."""
    if source.startswith("/"):
        check_role(write.who, write.role, Role.ADMIN)


def adapter_policy_api(adapters: AdapterManager) -> APIRouter:
    """The handlers of /adapter-policy."""
    router = resources("/adapter-policy", tag="adapters")

    @router.get("")
    async def get_policy(_: Viewer, response: Response) -> AdapterPolicyModel:
        """What a promotion asks for."""
        tagged(response, adapters.view.adapters.policy)
        return AdapterPolicyModel.of(adapters.view.adapters.policy)

    @router.put("")
    async def put_policy(body: AdapterPolicyModel, write: Change) -> AdapterPolicyModel:
        """Says what a promotion asks for from now on; what is promoted already stays so."""
        write.tell(policy := await adapters.set_policy(body.to_policy(), write))
        return AdapterPolicyModel.of(policy)

    return router
