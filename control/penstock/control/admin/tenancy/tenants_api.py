"""Tenants: create, change, list, delete."""

from __future__ import annotations

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
from penstock.control.admin.tenancy.tenant_models import NewTenant, TenantModel, TenantSpecModel
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.state.tenancy.tenants import Tenant, TenantSpec
from penstock.control.state.tenancy.tokens import Token

Setter = Annotated[Token, sets(TenantSpec)]


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

    async def create_tenant(
        self, body: NewTenant, caller: Setter, response: Response, dry_run: DryRun = False
    ) -> TenantModel:
        """Creates a tenant; 409 where the id is taken."""
        made = await self._tenants.create(body.id, body.to_spec(), caller.name, dry_run=dry_run)
        response.headers["location"] = _location(made)
        return self._shown(made, response)

    async def get_tenant(self, tenant_id: str, _: Viewer, response: Response) -> TenantModel:
        """One tenant."""
        return self._shown(self._tenants.tenancy.tenant(tenant_id), response)

    async def put_tenant(
        self,
        tenant_id: str,
        body: TenantSpecModel,
        caller: Setter,
        response: Response,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
        dry_run: DryRun = False,
    ) -> TenantModel:
        """Replaces what a tenant is held to, whole, or creates it (201). Its keys stay."""

        def check(known: Tenant | None) -> None:
            check_put(known, if_match, if_none_match, f"tenant {tenant_id!r}")

        tenant, is_new = await self._tenants.put(
            tenant_id, body.to_spec(), caller.name, check, dry_run=dry_run
        )
        if is_new:
            response.status_code = status.HTTP_201_CREATED
            response.headers["location"] = _location(tenant)
        return self._shown(tenant, response)

    async def delete_tenant(
        self,
        tenant_id: str,
        caller: Operator,
        if_match: IfMatch = None,
        dry_run: DryRun = False,
    ) -> None:
        """Deletes a tenant and its keys; what it used is told on."""

        def check(known: Tenant | None) -> None:
            check_match(known, if_match)

        await self._tenants.delete(tenant_id, caller.name, check, dry_run=dry_run)

    def _shown(self, tenant: Tenant, response: Response) -> TenantModel:
        response.headers["etag"] = etag(tenant)
        tenancy = self._tenants.tenancy
        return TenantModel.of(tenancy, tenant, tenancy.key_counts()[tenant.id])


def _location(tenant: Tenant) -> str:
    return f"/admin/v1/tenants/{tenant.id}"
