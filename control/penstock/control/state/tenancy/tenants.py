"""Who may send requests, and how many: tenants and their API keys. Pure values, with their rules.

A key is known by its SHA-256 alone. What a tenant is held to changes without its keys changing.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from penstock.control.declared.fields import Form, check, said, setting
from penstock.control.errors import InvalidInput
from penstock.control.state.tenancy.spend import usd

MAX_TENANTS = 10_000
MAX_KEYS = 1000  # of one tenant
# What gateways are told of those that were ended: one that was away for longer keeps the rest.
MAX_ENDED_KEYS = 256
MAX_LIMIT = 2**31 - 1  # of a minute, and of streams
MAX_QUOTA = 2**53 - 1  # tokens of a day: what JSON carries exactly
MOST_NAMES = 1000  # of models, and of adapters
MAX_LIFE = timedelta(days=36_500)

_ID = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_ADAPTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SALT = re.compile(r"[\x20-\x7e]{0,128}")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{0,100}")


class Priority(StrEnum):
    """The highest class that a tenant's requests may name, and the one that they have without."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Degrade(StrEnum):
    """Whether a tenant's requests may get less than they asked for rather than nothing."""

    ALLOW = "allow"
    NEVER = "never"


class Fallbacks(StrEnum):
    """Whether a tenant's list of models holds for the deployments that stand in for another."""

    LISTED = "listed"  # rungs, and canaries that are providers, must be in the list too
    ALLOW = "allow"


class Shadowing(StrEnum):
    """Whether a tenant's requests may be repeated elsewhere, to compare the answers."""

    ALLOW = "allow"
    NEVER = "never"


def _count(unit: str, text: str, most: int = MAX_LIMIT) -> Any:
    return setting(text, 0, unit=unit, ge=0, le=most)


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """What a tenant is held to, at all gateways together; 0: no limit. Raises InvalidInput."""

    requests_per_minute: int = _count("requests", "0: no limit")
    tokens_per_minute: int = _count("tokens", "of prompts and answers; 0: no limit")
    tokens_per_day: int = _count(
        "tokens", "of prompts and answers, from midnight to midnight UTC; 0: no quota", MAX_QUOTA
    )
    usd_per_day: float = usd("{unit}, likewise; 0: no limit")
    max_streams: int = _count("requests", "{unit} under way at a time; 0: no limit")
    models: tuple[str, ...] = setting("deployments it may use; empty: all", (), most=MOST_NAMES)
    adapters: tuple[str, ...] = setting(
        "names of adapters it may use, without version; empty: all", (), most=MOST_NAMES
    )
    priority: Priority = setting(
        "the highest that its requests may name, and the one without", Priority.NORMAL
    )
    degrade: Degrade = setting(
        "never: its requests get what they ask for, or an error", Degrade.ALLOW
    )
    fallbacks: Fallbacks = setting(
        "listed: `models` holds for fallbacks of ladders, and for canaries that are "
        "providers, too; allow: these may be any",
        Fallbacks.LISTED,
    )
    shadow: Shadowing = setting("never: no shadow repeats its requests", Shadowing.ALLOW)
    cache_salt: str | None = setting(
        'null: its prefix caches are its own; "": shared with all who say so', None
    )

    @property
    def has_day_limits(self) -> bool:
        """Whether its requests reserve of a day."""
        return bool(self.tokens_per_day or self.usd_per_day)

    def __post_init__(self) -> None:
        check(self)
        _check_names("models", self.models, _ID, "name deployments as `penstock status` does")
        _check_names("adapters", self.adapters, _ADAPTER, "name adapters without @ and version")
        if self.cache_salt is not None and not _SALT.fullmatch(self.cache_salt):
            raise InvalidInput("cache_salt must be at most 128 printable ASCII characters")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant with its identity and history."""

    id: str
    uid: str  # hex; tells it from deleted namesakes
    generation: int  # begins at 1, grows by one with each change
    spec: TenantSpec = field(metadata=said(inner=True))
    created_at: datetime
    updated_at: datetime

    @property
    def cache_salt(self) -> str:
        """What keeps its prefix caches apart; empty: they are shared."""
        if self.spec.cache_salt is not None:
            return self.spec.cache_salt
        return hashlib.sha256(f"cache salt of {self.uid}".encode()).hexdigest()[:32]


def _hex(digest: str) -> str:
    """Gateways are told it as bytes."""
    return bytes.fromhex(digest).hex()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: enough to know it again, not enough to use it."""

    id: str  # not made from the key
    tenant: str
    name: str  # for people
    digest: str = field(repr=False, metadata=said("SHA-256 of the whole key", form=Form(str, _hex)))
    created_at: datetime
    expires_at: datetime | None = None  # None: never
    tokens_per_day: int = _count(
        "tokens", "of this key, besides its tenant's; 0: no limit", MAX_QUOTA
    )
    usd_per_day: float = usd("likewise, {unit}; 0: no limit")

    @property
    def has_day_limits(self) -> bool:
        """Whether its requests reserve of a day."""
        return bool(self.tokens_per_day or self.usd_per_day)


@dataclass(frozen=True, slots=True)
class Access:
    """Whether requests without a key are refused by order of the head."""

    keys_required: bool = setting("", False, role="admin")
    keys_made: bool = False  # at least one, ever: none needs one until then
    # Ids of the last that were revoked with what they had under way, which gateways end.
    ended_keys: tuple[str, ...] = ()


def created_tenant(tenant_id: str, spec: TenantSpec, now: datetime, *, uid: str) -> Tenant:
    """A tenant's first generation. Raises InvalidInput for what is no id."""
    if not _ID.fullmatch(tenant_id):
        raise InvalidInput(
            f"id is {tenant_id!r}: it must be 1 to 63 of a-z, 0-9, '.', '_' and '-', "
            "beginning and ending with a letter or digit"
        )
    return Tenant(tenant_id, uid, 1, spec, created_at=now, updated_at=now)


def changed_tenant(tenant: Tenant, spec: TenantSpec, now: datetime) -> Tenant:
    """The next generation; the same one where the spec says nothing new."""
    if spec == tenant.spec:
        return tenant
    return replace(tenant, spec=spec, generation=tenant.generation + 1, updated_at=now)


def check_new_key(key: ApiKey) -> None:
    """Raises InvalidInput for a name that no key may have, limits that are none, and an end that is
    no use."""
    if not _NAME.fullmatch(key.name):
        raise InvalidInput("name must be at most 100 characters without control characters")
    check(key)
    expires_at, now = key.expires_at, key.created_at
    if expires_at is None:
        return
    if expires_at <= now:
        raise InvalidInput(
            f"expires_at is {expires_at.isoformat()}, which is past: name a later one"
        )
    if expires_at - now > MAX_LIFE:
        raise InvalidInput(
            f"expires_at is {expires_at.isoformat()}: leave it out for a key that never expires"
        )


def _check_names(what: str, names: tuple[str, ...], form: re.Pattern[str], advice: str) -> None:
    for name in names:
        if not form.fullmatch(name):
            raise InvalidInput(f"{what} has {name!r}: {advice}, or leave it empty for all")
        if names.count(name) > 1:
            raise InvalidInput(f"{what} has {name!r} twice: keep one")
