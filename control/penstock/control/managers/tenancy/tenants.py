"""Tenants and their keys: made, changed, revoked. What is stored of a key is its SHA-256 alone."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.tenancy import Tenancy
from penstock.control.state.tenancy.tenants import (
    Access,
    ApiKey,
    Tenant,
    TenantSpec,
    changed_tenant,
    check_new_key,
    created_tenant,
)
from penstock.control.supervision.clock import Clock

PREFIX = "psk_"
KEY_BYTES = 32


class MadeKey(NamedTuple):
    """A key that was made just now."""

    key: ApiKey
    secret: str  # what clients send; nobody knows it afterwards
    refuses_others: bool  # it is the first one: from now on requests without a key are refused


class TenantManager:
    """Changes the view through the cluster store, so that every gateway is told at once.

    All raise `StoreUnavailable` and `HoldsStill`, and `revision-mismatch`.
    """

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def tenancy(self) -> Tenancy:
        """All tenants, keys and what holds for them."""
        return self._cluster.view().tenancy

    async def create(self, tenant_id: str, spec: TenantSpec, write: Write) -> Tenant:
        """Makes a tenant. Raises `InvalidInput`, `tenant-exists` and `conflict`."""
        tenant = self._new(tenant_id, spec)
        what = f"create tenant {tenant_id}"
        await self._apply(lambda tenancy: tenancy.with_new_tenant(tenant), write, what)
        return tenant

    async def put(self, tenant_id: str, spec: TenantSpec, write: Write) -> tuple[Tenant, bool]:
        """Makes a tenant as this spec says; returns it, and whether it is a new one."""
        new = self._new(tenant_id, spec)

        def step(tenancy: Tenancy) -> Tenancy:
            write.check(tenancy.tenants.get(tenant_id), f"tenant {tenant_id!r}")
            return put_tenant(tenancy, new)

        found = (await self._apply(step, write, f"put tenant {tenant_id}")).tenant(tenant_id)
        return found, found.uid == new.uid

    async def delete(self, tenant_id: str, write: Write) -> None:
        """Deletes a tenant with its keys; what it used stays told. Raises `unknown-tenant`."""

        def step(tenancy: Tenancy) -> Tenancy:
            write.check(tenancy.tenant(tenant_id), f"tenant {tenant_id!r}")
            return tenancy.without_tenant(tenant_id)

        await self._apply(step, write, f"delete tenant {tenant_id}")

    async def create_key(
        self,
        tenant_id: str,
        name: str,
        expires_at: datetime | None,
        write: Write,
        *,
        tokens_per_day: int = 0,
        usd_per_day: float = 0.0,
    ) -> MadeKey:
        """Makes a key, held to limits of its own besides its tenant's.

        A dry run has no secret. Raises `InvalidInput`, `unknown-tenant` and `conflict`.
        """
        secret = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        digest = hashlib.sha256(secret.encode()).hexdigest()
        key = ApiKey(
            f"key_{secrets.token_hex(6)}",
            tenant_id,
            name,
            digest,
            self._clock.now(),
            expires_at,
            tokens_per_day,
            usd_per_day,
        )
        check_new_key(key)
        refuses_others = False

        def step(tenancy: Tenancy) -> Tenancy:
            nonlocal refuses_others
            changed = tenancy.with_key(key)
            refuses_others = changed.access.keys_required and not tenancy.access.keys_required
            return changed

        await self._apply(step, write, f"create key {key.id} of tenant {tenant_id}")
        return MadeKey(key, "" if write.dry_run else secret, refuses_others)

    async def revoke_key(
        self, tenant_id: str, key_id: str, write: Write, *, end_streams: bool = False
    ) -> None:
        """Nobody gets in with it any more, and what it has under way goes on to its end, or is
        ended by each gateway. Raises `unknown-tenant` and `unknown-key`."""

        def step(tenancy: Tenancy) -> Tenancy:
            write.check(tenancy.key_of(tenant_id, key_id), f"key {key_id!r}")
            return tenancy.without_key(tenant_id, key_id, end_streams=end_streams)

        await self._apply(step, write, f"revoke key {key_id} of tenant {tenant_id}")

    async def set_anonymous(self, write: Write, *, allowed: bool) -> Access:
        """Says whether requests without a key are answered."""

        def step(tenancy: Tenancy) -> Tenancy:
            write.check(tenancy.access, "whether a key is asked for")
            return tenancy.with_anonymous(allowed=allowed)

        what = f"{'allow' if allowed else 'refuse'} requests without a key"
        return (await self._apply(step, write, what)).access

    def _new(self, tenant_id: str, spec: TenantSpec) -> Tenant:
        return new_tenant(tenant_id, spec, self._clock.now())

    async def _apply(self, step: Callable[[Tenancy], Tenancy], write: Write, what: str) -> Tenancy:
        def on_view(view: ClusterView) -> ClusterView:
            return replace(view, tenancy=step(view.tenancy))

        return (await write.apply(self._cluster, on_view, what)).tenancy


def new_tenant(tenant_id: str, spec: TenantSpec, now: datetime) -> Tenant:
    """A tenant that is not there yet. Raises `InvalidInput`."""
    return created_tenant(tenant_id, spec, now, uid=secrets.token_hex(16))


def put_tenant(tenancy: Tenancy, new: Tenant) -> Tenancy:
    """With this tenant, or its namesake as its spec says. Raises `conflict`."""
    known = tenancy.tenants.get(new.id)
    if known is None:
        return tenancy.with_new_tenant(new)
    return tenancy.with_tenant(changed_tenant(known, new.spec, new.updated_at))
