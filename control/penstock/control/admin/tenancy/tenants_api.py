"""Tenants: create, change, list, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.documents import or_created
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.tenancy.tenant_models import NewTenant, TenantModel, TenantSpecModel
from penstock.control.admin.writes import Asked, Change, creates, puts, tagged
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.state.tenancy.tenants import Tenant, TenantSpec

Creates = Annotated[Asked, creates(TenantSpec)]
Puts = Annotated[Asked, puts(TenantSpec)]


class TenantsApi:
    """The handlers of /tenants; their docstrings are the API's documents."""

    def __init__(self, tenants: TenantManager) -> None:
        self._tenants = tenants

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/tenants", tag="tenants")
        router.get("")(self.list_tenants)
        router.post("", status_code=status.HTTP_201_CREATED)(self.create_tenant)
        router.get("/{tenant_id}")(self.get_tenant)
        router.put("/{tenant_id}", responses=or_created(TenantModel))(self.put_tenant)
        router.delete("/{tenant_id}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_tenant)
        return router

    async def list_tenants(self, _: Viewer, page: Paged) -> list[TenantModel]:
        """Tenants, by id."""
        tenancy = self._tenants.tenancy
        keys = tenancy.key_counts()
        return [TenantModel.of(tenancy, it, keys[it.id]) for it in page.of(tenancy.tenants)]

    async def create_tenant(self, body: NewTenant, write: Creates) -> TenantModel:
        """Creates a tenant; 409 where the id is taken."""
        made = await self._tenants.create(body.id, body.to_spec(), write)
        write.tell(made, _location(made))
        return self._model(made)

    async def get_tenant(self, tenant_id: str, _: Viewer, response: Response) -> TenantModel:
        """One tenant."""
        found = self._tenants.tenancy.tenant(tenant_id)
        tagged(response, found)
        return self._model(found)

    async def put_tenant(self, tenant_id: str, body: TenantSpecModel, write: Puts) -> TenantModel:
        """Replaces what a tenant is held to, whole, or creates it (201). Its keys stay."""
        tenant, is_new = await self._tenants.put(tenant_id, body.to_spec(), write)
        write.tell(tenant, _location(tenant) if is_new else "")
        return self._model(tenant)

    async def delete_tenant(self, tenant_id: str, write: Change) -> None:
        """Deletes a tenant and its keys; what it used is told on."""
        await self._tenants.delete(tenant_id, write)

    def _model(self, tenant: Tenant) -> TenantModel:
        tenancy = self._tenants.tenancy
        return TenantModel.of(tenancy, tenant, tenancy.key_counts()[tenant.id])


def _location(tenant: Tenant) -> str:
    return f"/admin/v1/tenants/{tenant.id}"
