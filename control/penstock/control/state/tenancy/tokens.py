"""Who may ask the head for what: bearer tokens, of which only the SHA-256 is known here. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from penstock.control.errors import Code, InvalidInput, PenstockError

MAX_TOKENS = 1000  # that are not revoked
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


class Role(StrEnum):
    """What a token allows; each role includes those before it, but for the last, which is outside
    of the ladder."""

    VIEWER = "viewer"  # reads everything but tokens
    OPERATOR = "operator"  # changes deployments, nodes, gateways and the quarantine
    ADMIN = "admin"  # makes and revokes tokens; lets code run that comes with a model
    ROUTER = "router"  # calls replicas' MicroServing by REST, and nothing of the head

    def includes(self, other: Role) -> bool:
        """Whether who has this role may do what the other role may."""
        order = tuple(Role)
        return Role.ROUTER not in (self, other) and order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored: enough to know it again, not enough to use it."""

    id: str
    name: str  # who the audit trail says it was
    role: Role
    digest: str = field(repr=False)  # SHA-256 of the token, hex
    created_at: datetime
    last_used_at: datetime | None = None  # to the hour, about
    revoked_at: datetime | None = None


def digest_of(secret: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def holder(tokens: Iterable[Token], secret: str) -> Token | None:
    """The token that this is, unless it was revoked. Takes as long for each wrong one."""
    digest, found = digest_of(secret), None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest) and token.revoked_at is None:
            found = token
    return found


def router_digests(tokens: Iterable[Token]) -> tuple[bytes, ...]:
    """SHA-256s of the live tokens of role router, which replicas take."""
    live = (t for t in tokens if t.role is Role.ROUTER and t.revoked_at is None)
    return tuple(sorted(bytes.fromhex(each.digest) for each in live))


def check_new(tokens: Iterable[Token], name: str) -> None:
    """Raises `InvalidInput` for a name that no token may have, `conflict` for one in use."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name is {name!r}: it must be 1 to 63 letters, digits, '.', '_', '@' and '-'"
        )
    valid = [token for token in tokens if token.revoked_at is None]
    if any(token.name == name for token in valid):
        raise PenstockError(
            f"a token named {name!r} exists: revoke it first, or choose another name", Code.CONFLICT
        )
    if len(valid) >= MAX_TOKENS:
        raise PenstockError(
            f"there are {MAX_TOKENS} tokens: revoke those that nobody uses", Code.CONFLICT
        )


def check_revocable(tokens: Iterable[Token], token: Token) -> None:
    """Raises `conflict` for the last token of role admin: without it nobody could make another."""
    others = (t for t in tokens if t.id != token.id and t.revoked_at is None)
    if token.role is Role.ADMIN and not any(t.role is Role.ADMIN for t in others):
        raise PenstockError(
            f"{token.name!r} is the last token of role admin: create another one before revoking"
            " it",
            Code.CONFLICT,
        )
