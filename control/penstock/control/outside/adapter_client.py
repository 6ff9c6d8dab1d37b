"""Adapters and aliases in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from penstock.control.admin.adapters.alias_models import AliasModel, MoveModel
from penstock.control.admin.adapters.models import (
    AdapterModel,
    AdapterPolicyModel,
    EvidenceModel,
    WhereModel,
)
from penstock.control.outside.admin_transport import AdminTransport, quote

# A source may be far away, or large.
REGISTER_TIMEOUT = timedelta(minutes=30)


class AdapterClient(AdminTransport):
    """The calls about adapter versions and what names them."""

    async def adapters(self) -> list[AdapterModel]:
        """Every version."""
        return await self.pages_of("adapters", AdapterModel, lambda it: it.adapter)

    async def adapter(self, ref: str) -> AdapterModel:
        """One version."""
        return await self.get(AdapterModel, _path(ref))

    async def register_adapter(
        self, name: str, version: str, base: str, source: str, labels: Mapping[str, str]
    ) -> tuple[AdapterModel, bool]:
        """Registers a version from a source that the head reads; whether it is new."""
        body = {
            "name": name,
            "version": version,
            "base": base,
            "source": source,
            "labels": dict(labels),
        }
        reply = await self.call(
            "POST", "/adapters", json=body, timeout=REGISTER_TIMEOUT.total_seconds()
        )
        return self.read(reply, AdapterModel), reply.status_code == CREATED

    async def upload_adapter(
        self, content: AsyncIterator[bytes], content_type: str
    ) -> tuple[AdapterModel, bool]:
        """Registers a version of which manifest and files are sent along, as multipart."""
        reply = await self.call(
            "POST",
            "/adapters",
            content=content,
            headers={"content-type": content_type},
            timeout=REGISTER_TIMEOUT.total_seconds(),
        )
        return self.read(reply, AdapterModel), reply.status_code == CREATED

    async def promote_adapter(self, ref: str, to: str) -> AdapterModel:
        """Brings a version forward."""
        return await self.post(AdapterModel, f"{_path(ref)}/promote", json={"to": to})

    async def retire_adapter(self, ref: str, *, abort_canary: bool = False) -> AdapterModel:
        """Nobody may ask for it any more."""
        params = {"abort_canary": abort_canary}
        return await self.post(AdapterModel, f"{_path(ref)}/retire", params=params)

    async def remove_adapter(self, ref: str, *, abort_canary: bool = False) -> None:
        """Deletes it for good."""
        await self.call("DELETE", _path(ref), params={"abort_canary": abort_canary})

    async def where_adapter(self, ref: str) -> list[WhereModel]:
        """On which replicas it is."""
        return await self.get(list[WhereModel], f"{_path(ref)}/replicas")

    async def evidence(self, ref: str) -> list[EvidenceModel]:
        """What evaluations found of it."""
        return await self.get(list[EvidenceModel], f"{_path(ref)}/evidence")

    async def adapter_policy(self) -> AdapterPolicyModel:
        """What a promotion asks for."""
        return await self.get(AdapterPolicyModel, "/adapter-policy")

    async def set_adapter_policy(self, policy: AdapterPolicyModel) -> AdapterPolicyModel:
        """Asks for something else from now on."""
        return await self.put(AdapterPolicyModel, "/adapter-policy", json=policy.model_dump())

    async def aliases(self, deployment: str | None = None) -> list[AliasModel]:
        """Every alias, or those of one deployment."""
        only = deployment or None
        return await self.pages_of("aliases", AliasModel, lambda it: it.model, deployment=only)

    async def put_alias(
        self, deployment: str, alias: str, spec: Mapping[str, Any], *, abort_canary: bool = False
    ) -> AliasModel:
        """Moves an alias, or makes it."""
        path, params = _alias(deployment, alias), {"abort_canary": abort_canary}
        return await self.put(AliasModel, path, json=dict(spec), params=params)

    async def undo_alias(
        self, deployment: str, alias: str, *, abort_canary: bool = False
    ) -> AliasModel:
        """Takes its last move back."""
        path, params = f"{_alias(deployment, alias)}/undo", {"abort_canary": abort_canary}
        return await self.post(AliasModel, path, params=params)

    async def delete_alias(
        self, deployment: str, alias: str, *, abort_canary: bool = False
    ) -> None:
        """Nobody can say it any more."""
        params = {"abort_canary": abort_canary}
        await self.call("DELETE", _alias(deployment, alias), params=params)

    async def alias_history(self, deployment: str, alias: str) -> list[MoveModel]:
        """Its moves, the newest first."""
        path = f"{_alias(deployment, alias)}/history"
        return await self.get(list[MoveModel], path)


CREATED = 201


def _path(ref: str) -> str:
    return f"/adapters/{quote(ref)}"


def _alias(deployment: str, alias: str) -> str:
    return f"/aliases/{quote(deployment)}/{quote(alias)}"
