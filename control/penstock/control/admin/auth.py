"""Who asks, and whether they may. Pure but for the declaration of the scheme."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from penstock.control.declared.fields import named
from penstock.control.errors import Code, Refused, Unauthenticated, UnknownToken
from penstock.control.state.tenancy.tokens import Role, Token

SCHEME = "bearer"
HELP = "send `Authorization: Bearer TOKEN`; the head's first start wrote one to admin.token in its "
HELP += "data directory"
# Declared for the documents, whose Authorize button it makes; `middleware.py` checks.
_BEARER = HTTPBearer(
    auto_error=False,
    description="A token, such as the one that the head's first start wrote to `admin.token` in "
    "its data directory; `penstock tokens create` makes more.",
)


def bearer_of(authorization: Sequence[str]) -> str:
    """The token in the Authorization headers of a request. Raises `Unauthenticated`."""
    if not authorization:
        raise Unauthenticated(f"this needs a token: {HELP}")
    scheme, _, secret = authorization[0].partition(" ")
    secret = secret.strip()
    if len(authorization) > 1 or scheme.lower() != SCHEME or not secret:
        raise Unauthenticated(f"the Authorization header cannot be used: {HELP}")
    return secret


def identified(authorization: Sequence[str], holder: Callable[[str], Token | None]) -> Token:
    """The valid token that a request carries. Raises `Unauthenticated`, and of that kind
    `UnknownToken`."""
    token = holder(bearer_of(authorization))
    if token is None:
        raise UnknownToken(f"this token is not known, or was revoked: {HELP}")
    return token


def check_role(token: Token, needed: Role) -> None:
    """Raises `forbidden` where the token's role does not include the needed one."""
    if not token.role.includes(needed):
        raise Refused(
            f"token {token.name!r} has role {token.role}, this needs role {needed}: "
            "ask somebody with role admin for another token",
            Code.FORBIDDEN,
        )


def _requires(needed: Role) -> Callable[..., Coroutine[Any, Any, Token]]:
    async def caller(
        request: Request,
        _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)] = None,
    ) -> Token:
        token = getattr(request.state, "caller", None)
        if not isinstance(token, Token):
            raise Unauthenticated(f"this needs a token: {HELP}")
        check_role(token, needed)
        return token

    return caller


def sets(*kinds: type) -> Any:
    """Of the parameter that tells who asks, where a handler takes fields of these: a token whose
    role may set them all."""
    needed = {Role(leaf.declared.role) for leaf in named(*kinds)}
    return Depends(_requires(max(needed, key=list(Role).index)))


# What a handler writes as the type of the parameter that tells it who asks.
Viewer = Annotated[Token, Depends(_requires(Role.VIEWER))]
Operator = Annotated[Token, Depends(_requires(Role.OPERATOR))]
Admin = Annotated[Token, Depends(_requires(Role.ADMIN))]
