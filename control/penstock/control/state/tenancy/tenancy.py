"""All tenants and keys at one moment, and what time and usage made of them. Immutable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from types import MappingProxyType

from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.spend import NANO
from penstock.control.state.tenancy.tenants import (
    MAX_ENDED_KEYS,
    MAX_KEYS,
    MAX_TENANTS,
    Access,
    ApiKey,
    Tenant,
)
from penstock.control.state.tenancy.usage import Counts, midnight_after


@dataclass(frozen=True, slots=True)
class Standing:
    """What follows from the clock and from usage; never stored."""

    day: date | None = None  # of UTC
    used_up: frozenset[str] = frozenset()  # tenants that have had their tokens of the day
    out_of_money: frozenset[str] = frozenset()  # tenants that have had their dollars of the day
    expired: frozenset[str] = frozenset()  # ids of keys


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Part of the cluster view. Mappings are read-only."""

    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    keys: Mapping[str, ApiKey] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    standing: Standing = field(default_factory=Standing)
    shares: Shares = field(default_factory=Shares)

    def tenant(self, tenant_id: str) -> Tenant:
        """The tenant of this id; raises `unknown-tenant`."""
        if found := self.tenants.get(tenant_id):
            return found
        raise NotFound(
            f"no tenant {tenant_id!r}: GET /admin/v1/tenants lists them", Code.UNKNOWN_TENANT
        )

    def keys_of(self, tenant_id: str) -> list[ApiKey]:
        """A tenant's keys by their making."""
        found = (key for key in self.keys.values() if key.tenant == tenant_id)
        return sorted(found, key=lambda key: (key.created_at, key.id))

    def key_counts(self) -> Counter[str]:
        """How many keys each tenant has."""
        return Counter(key.tenant for key in self.keys.values())

    def with_new_tenant(self, tenant: Tenant) -> Tenancy:
        """With one more; raises `tenant-exists` and `conflict`."""
        if tenant.id in self.tenants:
            raise PenstockError(
                f"tenant {tenant.id!r} exists: change it with PUT, or delete it first",
                Code.TENANT_EXISTS,
            )
        if len(self.tenants) >= MAX_TENANTS:
            raise PenstockError(
                f"there are {MAX_TENANTS} tenants: delete those that nobody needs", Code.CONFLICT
            )
        return self.with_tenant(tenant)

    def with_tenant(self, tenant: Tenant) -> Tenancy:
        """With this one in the place of its namesake."""
        return replace(self, tenants=MappingProxyType({**self.tenants, tenant.id: tenant}))

    def without_tenant(self, tenant_id: str) -> Tenancy:
        """Without it and its keys; raises `unknown-tenant`."""
        self.tenant(tenant_id)
        tenants = {name: each for name, each in self.tenants.items() if name != tenant_id}
        keys = {name: key for name, key in self.keys.items() if key.tenant != tenant_id}
        return replace(
            self,
            tenants=MappingProxyType(tenants),
            keys=MappingProxyType(keys),
            shares=self.shares.without(tenant_id),
        )

    def with_key(self, key: ApiKey) -> Tenancy:
        """With one more key; the first one ever has requests without a key refused. Raises
        `unknown-tenant` and `conflict`."""
        self.tenant(key.tenant)
        if self.key_counts()[key.tenant] >= MAX_KEYS:
            raise PenstockError(
                f"tenant {key.tenant!r} has {MAX_KEYS} keys: revoke those of no use", Code.CONFLICT
            )
        first = not self.access.keys_made
        access = self.access
        if first:
            access = replace(access, keys_required=True, keys_made=True)
        return replace(self, keys=MappingProxyType({**self.keys, key.id: key}), access=access)

    def key_of(self, tenant_id: str, key_id: str) -> ApiKey:
        """One key of a tenant. Raises `unknown-tenant` and `unknown-key`."""
        self.tenant(tenant_id)
        known = self.keys.get(key_id)
        if known is None or known.tenant != tenant_id:
            raise NotFound(
                f"tenant {tenant_id!r} has no key {key_id!r}: "
                f"GET /admin/v1/tenants/{tenant_id}/keys lists them",
                Code.UNKNOWN_KEY,
            )
        return known

    def without_key(self, tenant_id: str, key_id: str, *, end_streams: bool = False) -> Tenancy:
        """With one key less, and with an end to what it has under way where that is wanted. Raises
        as `key_of`."""
        self.key_of(tenant_id, key_id)
        keys = {name: key for name, key in self.keys.items() if name != key_id}
        access = self.access
        if end_streams:
            ended = (*access.ended_keys, key_id)[-MAX_ENDED_KEYS:]
            access = replace(access, ended_keys=ended)
        return replace(self, keys=MappingProxyType(keys), access=access)

    def with_anonymous(self, *, allowed: bool) -> Tenancy:
        """After an operator has said whether requests without a key are answered."""
        return replace(self, access=replace(self.access, keys_required=not allowed))


@dataclass(frozen=True, slots=True)
class TenantRoute:
    """A tenant as gateways need it."""

    tenant: Tenant
    keys: tuple[ApiKey, ...]
    quota_used_up: bool = False
    quota_resets_at_ms: int = 0  # milliseconds since 1970; 0: it has no quota


def tenant_routes(tenancy: Tenancy) -> tuple[TenantRoute, ...]:
    """All tenants, with the keys of each that have not expired."""
    keys: dict[str, list[ApiKey]] = {}
    for _, key in sorted(tenancy.keys.items()):
        if key.id not in tenancy.standing.expired:
            keys.setdefault(key.tenant, []).append(key)
    standing = tenancy.standing
    reset = midnight_after(standing.day) if standing.day else 0
    return tuple(
        TenantRoute(
            tenant,
            tuple(keys.get(tenant.id, ())),
            quota_used_up=tenant.id in standing.used_up,
            quota_resets_at_ms=reset if tenant.spec.tokens_per_day else 0,
        )
        for _, tenant in sorted(tenancy.tenants.items())
    )


def standing_at(tenancy: Tenancy, now: datetime, today: Mapping[str, Counts]) -> Standing:
    """What holds now, with what tenants have had since midnight."""
    return Standing(
        now.astimezone(UTC).date(),
        frozenset(
            tenant.id
            for tenant in tenancy.tenants.values()
            if 0 < tenant.spec.tokens_per_day <= today.get(tenant.id, Counts()).tokens
        ),
        frozenset(
            tenant.id
            for tenant in tenancy.tenants.values()
            if 0 < tenant.spec.usd_per_day * NANO <= today.get(tenant.id, Counts()).cost_nanousd
        ),
        expired(tenancy.keys.values(), now),
    )


def expired(keys: Iterable[ApiKey], now: datetime) -> frozenset[str]:
    """The ids of those that are past their end."""
    return frozenset(key.id for key in keys if key.expires_at and key.expires_at <= now)
