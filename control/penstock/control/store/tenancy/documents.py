"""Tenants, keys, access and shares to documents and back, where more is to be known than fields."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.declared.codec import Codec
from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.tenants import Access, ApiKey, Tenant
from penstock.control.store.store import Document

# Of which there is one: the documents' name.
ONE = "all"
TENANTS, KEYS, SHARES = Codec(Tenant), Codec(ApiKey), Codec(Shares)
# What bounds a tenant and was ever written: the default of one would let it do more.
_BOUNDS = (
    *("requests_per_minute", "tokens_per_minute", "tokens_per_day", "max_streams"),
    *("models", "adapters", "priority", "degrade"),
)


def to_tenant(document: Document) -> Tenant:
    """A tenant as it was written. Raises `ValueError` for one without its bounds."""
    if missing := [name for name in _BOUNDS if name not in document]:
        raise ValueError(f"{', '.join(missing)} is missing")
    return TENANTS.value(document)


def to_access(document: Document) -> Access:
    """Who made it is `asdict`; one that says nothing lets nobody in."""
    return Access(
        bool(document["keys_required"]),
        bool(document["keys_made"]),
        tuple(str(name) for name in document.get("ended_keys", ())),
    )


def to_shares(document: Document) -> Shares:
    """What gateways were told; shares that leave out a member are forgotten."""
    told = SHARES.value(document)
    members = set(told.members)
    return replace(
        told,
        of={tenant: each for tenant, each in told.of.items() if each.keys() == members},
        streams={name: each for name, each in told.streams.items() if each.of.keys() == members},
    )
