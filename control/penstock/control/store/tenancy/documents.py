"""Tenants, keys, access and shares to documents and back, where more is to be known than fields."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.declared.codec import Codec
from penstock.control.state.tenancy.shares import Shares
from penstock.control.state.tenancy.tenants import Access, ApiKey, Tenant
from penstock.control.state.tenancy.tokens import Token
from penstock.control.store.store import Document

# Of which there is one: the documents' name.
ONE = "all"
TENANTS, KEYS, SHARES, TOKENS = Codec(Tenant), Codec(ApiKey), Codec(Shares), Codec(Token)
# What bounds them and was ever written: with the default of one they could do more.
_OF_TENANTS = (
    *("requests_per_minute", "tokens_per_minute", "tokens_per_day", "max_streams"),
    *("models", "adapters", "priority", "degrade"),
)
_OF_KEYS = ("expires_at",)
_OF_TOKENS = ("revoked_at",)


def to_tenant(document: Document) -> Tenant:
    """A tenant as it was written. Raises `ValueError` for one that has lost a bound."""
    return TENANTS.value(_with(document, _OF_TENANTS))


def to_key(document: Document) -> ApiKey:
    """A key, likewise."""
    return KEYS.value(_with(document, _OF_KEYS))


def from_token(token: Token) -> Document:
    """A token's document, which its id names."""
    return {name: each for name, each in TOKENS.document(token).items() if name != "id"}


def to_token(token_id: str, document: Document) -> Token:
    """The inverse. Raises `ValueError`."""
    return TOKENS.value({**_with(document, _OF_TOKENS), "id": token_id})


def _with(document: Document, bounds: tuple[str, ...]) -> Document:
    if missing := [name for name in bounds if name not in document]:
        raise ValueError(f"{', '.join(missing)} is missing")
    return document


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
