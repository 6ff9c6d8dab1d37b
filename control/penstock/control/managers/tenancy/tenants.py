"""Tenants and their keys: made, changed, revoked. What is stored of a key is its SHA-256 alone."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from penstock.control.managers.cluster_store import ClusterStore
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
from penstock.control.store.store import Author
from penstock.control.supervision.clock import Clock

PREFIX = "psk_"
KEY_BYTES = 32

Check = Callable[[Tenant | None], None]


class MadeKey(NamedTuple):
    """A key that was made just now."""

    key: ApiKey
    secret: str  # what clients send; nobody knows it afterwards
    refuses_others: bool  # it is the first one: from now on requests without a key are refused


class TenantManager:
    """Changes the view through the cluster store, so that every gateway is told at once.

    All raise `StoreUnavailable` and `HoldsStill`; `check` sees the tenant that there is and may
    refuse. With `dry_run` everything is checked, and nothing changed.
    """

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def tenancy(self) -> Tenancy:
        """All tenants, keys and what holds for them."""
        return self._cluster.view().tenancy

    async def create(
        self, tenant_id: str, spec: TenantSpec, who: str, *, dry_run: bool = False
    ) -> Tenant:
        """Makes a tenant. Raises `InvalidInput`, `tenant-exists` and `conflict`."""
        tenant = self._new(tenant_id, spec)
        await self._apply(
            lambda tenancy: tenancy.with_new_tenant(tenant),
            Author(who, f"create tenant {tenant_id}"),
            dry_run=dry_run,
        )
        return tenant

    async def put(
        self, tenant_id: str, spec: TenantSpec, who: str, check: Check, *, dry_run: bool = False
    ) -> tuple[Tenant, bool]:
        """Makes a tenant as this spec says; returns it, and whether it is a new one."""
        new = self._new(tenant_id, spec)

        def step(tenancy: Tenancy) -> Tenancy:
            known = tenancy.tenants.get(tenant_id)
            check(known)
            if known is None:
                return tenancy.with_new_tenant(new)
            return tenancy.with_tenant(changed_tenant(known, spec, self._clock.now()))

        author = Author(who, f"put tenant {tenant_id}")
        found = (await self._apply(step, author, dry_run=dry_run)).tenant(tenant_id)
        return found, found.uid == new.uid

    async def delete(
        self, tenant_id: str, who: str, check: Check, *, dry_run: bool = False
    ) -> None:
        """Deletes a tenant with its keys; what it used stays told. Raises `unknown-tenant`."""

        def step(tenancy: Tenancy) -> Tenancy:
            check(tenancy.tenant(tenant_id))
            return tenancy.without_tenant(tenant_id)

        await self._apply(step, Author(who, f"delete tenant {tenant_id}"), dry_run=dry_run)

    async def create_key(
        self,
        tenant_id: str,
        name: str,
        expires_at: datetime | None,
        who: str,
        *,
        tokens_per_day: int = 0,
        usd_per_day: float = 0.0,
    ) -> MadeKey:
        """Makes a key, held to limits of its own besides its tenant's.

        Raises `InvalidInput`, `unknown-tenant` and `conflict`.
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
        author = Author(who, f"create key {key.id} of tenant {tenant_id}")
        refuses_others = False

        def step(tenancy: Tenancy) -> Tenancy:
            nonlocal refuses_others
            changed = tenancy.with_key(key)
            refuses_others = changed.access.keys_required and not tenancy.access.keys_required
            return changed

        await self._apply(step, author)
        return MadeKey(key, secret, refuses_others)

    async def revoke_key(
        self, tenant_id: str, key_id: str, who: str, *, end_streams: bool = False
    ) -> None:
        """Nobody gets in with it any more, and what it has under way goes on to its end, or is
        ended by each gateway. Raises `unknown-tenant` and `unknown-key`."""
        author = Author(who, f"revoke key {key_id} of tenant {tenant_id}")
        await self._apply(
            lambda tenancy: tenancy.without_key(tenant_id, key_id, end_streams=end_streams), author
        )

    async def set_anonymous(self, who: str, *, allowed: bool) -> Access:
        """Says whether requests without a key are answered."""
        author = Author(who, f"{'allow' if allowed else 'refuse'} requests without a key")
        changed = await self._apply(lambda t: t.with_anonymous(allowed=allowed), author)
        return changed.access

    def _new(self, tenant_id: str, spec: TenantSpec) -> Tenant:
        return created_tenant(tenant_id, spec, self._clock.now(), uid=secrets.token_hex(16))

    async def _apply(
        self, step: Callable[[Tenancy], Tenancy], author: Author, *, dry_run: bool = False
    ) -> Tenancy:
        def on_view(view: ClusterView) -> ClusterView:
            return replace(view, tenancy=step(view.tenancy))

        if dry_run:
            return on_view(self._cluster.view()).tenancy
        return (await self._cluster.apply(on_view, author)).tenancy
