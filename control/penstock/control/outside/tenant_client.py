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
        return await self.get(TenantModel, _path(tenant_id))

    async def create_tenant(
        self, tenant_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> TenantModel:
        """Makes a tenant that is held to these."""
        body = {"id": tenant_id, **limits}
        return await self.post(TenantModel, "/tenants", json=body, params={"dry_run": dry_run})

    async def change_tenant(
        self, tenant_id: str, limits: Mapping[str, Any], *, dry_run: bool = False
    ) -> TenantModel:
        """Changes those limits that are named; refused where somebody else changes it meanwhile."""
        found = await self.tenant(tenant_id)
        known = found.model_dump(mode="json", include=set(TenantSpecModel.model_fields))
        return await self.put(
            TenantModel,
            _path(tenant_id),
            json={**known, **limits},
            headers={"if-match": f'"{found.generation}-{found.uid}"'},
            params={"dry_run": dry_run},
        )

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
        return await self.post(CreatedKeyModel, f"{_path(tenant_id)}/keys", json=body)

    async def revoke_key(self, tenant_id: str, key_id: str, *, end_streams: bool) -> None:
        """Nobody gets in with it any more."""
        path = f"{_path(tenant_id)}/keys/{quote(key_id)}"
        await self.call("DELETE", path, params={"end_streams": end_streams})

    async def access(self) -> AccessModel:
        """Whether requests without a key are answered."""
        return await self.get(AccessModel, "/access")

    async def set_anonymous(self, anonymous: Anonymous) -> AccessModel:
        """Has them answered or refused."""
        body = {"anonymous": anonymous}
        return await self.put(AccessModel, "/access", json=body)

    async def usage(
        self, tenant_id: str | None, first: date | None, last: date | None
    ) -> UsageModel:
        """What a tenant used, or all of them."""
        params = {"from": first, "to": last}
        path = f"{_path(tenant_id)}/usage" if tenant_id is not None else "/usage"
        return await self.get(UsageModel, path, params=params)


def _path(tenant_id: str) -> str:
    return f"/tenants/{quote(tenant_id)}"
