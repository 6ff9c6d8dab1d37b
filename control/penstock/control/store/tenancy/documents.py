"""Tenants, keys, access and shares to documents and back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.stream_shares import StreamShares
from penstock.control.state.tenancy.tenants import (
    Access,
    ApiKey,
    Degrade,
    Fallbacks,
    Priority,
    Shadowing,
    Tenant,
    TenantSpec,
)
from penstock.control.store.store import Document

# Of which there is one: the documents' name.
ONE = "all"


def from_tenant(tenant: Tenant) -> Document:
    """A tenant's document."""
    spec = tenant.spec
    return {
        **asdict(spec),
        "models": list(spec.models),
        "adapters": list(spec.adapters),
        "id": tenant.id,
        "uid": tenant.uid,
        "generation": tenant.generation,
        "created_at": tenant.created_at.isoformat(),
        "updated_at": tenant.updated_at.isoformat(),
    }


def to_tenant(document: Document) -> Tenant:
    """The inverse of `from_tenant`."""
    spec = TenantSpec(
        requests_per_minute=document["requests_per_minute"],
        tokens_per_minute=document["tokens_per_minute"],
        tokens_per_day=document["tokens_per_day"],
        usd_per_day=document.get("usd_per_day", 0.0),
        max_streams=document["max_streams"],
        models=tuple(document["models"]),
        adapters=tuple(document["adapters"]),
        priority=Priority(document["priority"]),
        degrade=Degrade(document["degrade"]),
        fallbacks=Fallbacks(document.get("fallbacks", "listed")),
        shadow=Shadowing(document.get("shadow", "allow")),
        cache_salt=document["cache_salt"],
    )
    return Tenant(
        id=document["id"],
        uid=document["uid"],
        generation=document["generation"],
        spec=spec,
        created_at=datetime.fromisoformat(document["created_at"]),
        updated_at=datetime.fromisoformat(document["updated_at"]),
    )


def from_key(key: ApiKey) -> Document:
    """A key's document; `digest` is what the audit trail hides."""
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "digest": key.digest,
        "created_at": key.created_at.isoformat(),
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "tokens_per_day": key.tokens_per_day,
        "usd_per_day": key.usd_per_day,
    }


def to_key(document: Document) -> ApiKey:
    """The inverse of `from_key`."""
    expires_at = document["expires_at"]
    bytes.fromhex(document["digest"])  # gateways are told it as bytes
    return ApiKey(
        id=document["id"],
        tenant=document["tenant"],
        name=document["name"],
        digest=document["digest"],
        created_at=datetime.fromisoformat(document["created_at"]),
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
        tokens_per_day=document.get("tokens_per_day", 0),
        usd_per_day=document.get("usd_per_day", 0.0),
    )


def to_access(document: Document) -> Access:
    """Who made it is `asdict`."""
    return Access(
        bool(document["keys_required"]),
        bool(document["keys_made"]),
        tuple(str(name) for name in document.get("ended_keys", ())),
    )


def from_shares(shares: Shares) -> Document:
    """What gateways were told, so that a restarted head tells them the same."""
    return {
        "members": list(shares.members),
        "of": {tenant: dict(told) for tenant, told in shares.of.items()},
        "streams": {
            tenant: {"limit": told.limit, "of": dict(told.of)}
            for tenant, told in shares.streams.items()
        },
    }


def to_shares(document: Document) -> Shares:
    """The inverse of `from_shares`; shares that leave out a member are forgotten."""
    members = tuple(str(name) for name in document["members"])
    streams = {
        tenant: StreamShares(int(told["limit"]), _numbers(told["of"]))
        for tenant, told in document.get("streams", {}).items()
    }
    of = {tenant: _numbers(told) for tenant, told in document["of"].items()}
    return Shares(
        members,
        {tenant: told for tenant, told in of.items() if told.keys() == set(members)},
        {tenant: told for tenant, told in streams.items() if told.of.keys() == set(members)},
    )


def _numbers(document: Document) -> dict[str, int]:
    return {name: int(number) for name, number in document.items()}
