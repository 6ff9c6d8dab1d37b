"""Tenants, keys and usage in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from penstock.control.admin.tenancy.tenant_models import (
    AccessModel,
    Anonymous,
    CreatedKeyModel,
    KeyModel,
    TenantModel,
    TenantSpecModel,
    UsageModel,
)
from penstock.control.outside.admin_transport import AdminTransport, quote


class TenantClient(AdminTransport):
    """The calls about who may send requests."""

    async def tenants(self) -> list[TenantModel]:
        """Every tenant."""
        return await self.pages_of("tenants", TenantModel, lambda it: it.id)

    async def tenant(self, tenant_id: str) -> TenantModel:
        """One tenant."""
        return self.read(await self.call("GET", _path(tenant_id)), TenantModel)

    async def create_tenant(
        self, tenant_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> TenantModel:
        """Makes a tenant that is held to these."""
        body = {"id": tenant_id, **limits}
        reply = await self.call("POST", "/tenants", json=body, params=_dry(dry_run))
        return self.read(reply, TenantModel)

    async def change_tenant(
        self, tenant_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> TenantModel:
        """Changes those limits that are named; refused where somebody else changes it meanwhile."""
        found = await self.tenant(tenant_id)
        known = found.model_dump(mode="json", include=set(TenantSpecModel.model_fields))
        reply = await self.call(
            "PUT",
            _path(tenant_id),
            json={**known, **limits},
            headers={"if-match": f'"{found.generation}-{found.uid}"'},
            params=_dry(dry_run),
        )
        return self.read(reply, TenantModel)

    async def delete_tenant(self, tenant_id: str) -> None:
        """Deletes a tenant and its keys."""
        await self.call("DELETE", _path(tenant_id))

    async def keys(self, tenant_id: str) -> list[KeyModel]:
        """A tenant's keys, without the keys themselves."""
        return await self.pages_of(f"{_path(tenant_id)[1:]}/keys", KeyModel, lambda it: it.id)

    async def create_key(
        self,
        tenant_id: str,
        name: str,
        days: int | None,
        until: datetime | None,
        limits: Mapping[str, Any] | None = None,
    ) -> CreatedKeyModel:
        """Makes a key that is held to these; the answer alone has it."""
        body: dict[str, Any] = {"name": name, "expires_in_days": days, **(limits or {})}
        if until is not None:
            body["expires_at"] = until.isoformat()
        reply = await self.call("POST", f"{_path(tenant_id)}/keys", json=body)
        return self.read(reply, CreatedKeyModel)

    async def revoke_key(self, tenant_id: str, key_id: str, *, end_streams: bool) -> None:
        """Nobody gets in with it any more."""
        asked = "?end_streams=true" if end_streams else ""
        await self.call("DELETE", f"{_path(tenant_id)}/keys/{quote(key_id)}{asked}")

    async def access(self) -> AccessModel:
        """Whether requests without a key are answered."""
        return self.read(await self.call("GET", "/access"), AccessModel)

    async def set_anonymous(self, anonymous: Anonymous) -> AccessModel:
        """Has them answered or refused."""
        body = {"anonymous": anonymous}
        return self.read(await self.call("PUT", "/access", json=body), AccessModel)

    async def usage(
        self, tenant_id: str | None, first: date | None, last: date | None
    ) -> UsageModel:
        """What a tenant used, or all of them."""
        asked = {"from": first, "to": last}
        params = {name: day.isoformat() for name, day in asked.items() if day}
        path = f"{_path(tenant_id)}/usage" if tenant_id is not None else "/usage"
        return self.read(await self.call("GET", path, params=params), UsageModel)


def _path(tenant_id: str) -> str:
    return f"/tenants/{quote(tenant_id)}"


def _dry(wanted: bool) -> dict[str, str]:
    return {"dry_run": "true"} if wanted else {}
