"""Who asks, and whether they may. Pure but for the declaration of the scheme."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Depends, Request, Security
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


def check_role(who: str, role: Role, needed: Role) -> None:
    """Raises `forbidden` where the role of a token does not include the needed one."""
    if role is Role.ROUTER:
        raise Refused(
            f"token {who!r} has role {role}: it is for the MicroServing of replicas"
            " (/microserving/v1/ at their REST addresses), and for nothing of this API",
            Code.FORBIDDEN,
        )
    if not role.includes(needed):
        raise Refused(
            f"token {who!r} has role {role}, this needs role {needed}: "
            "ask somebody with role admin for another token",
            Code.FORBIDDEN,
        )


def _has(needed: Role) -> Callable[..., Coroutine[Any, Any, Token]]:
    async def caller(
        request: Request,
        _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)] = None,
    ) -> Token:
        token = getattr(request.state, "caller", None)
        if not isinstance(token, Token):
            raise Unauthenticated(f"this needs a token: {HELP}")
        check_role(token.name, token.role, needed)
        return token

    return caller


def requires(*needed: Role | type) -> Any:
    """Of the parameter that tells who asks: a token of this role; where a handler takes fields of
    declared types, one whose role may set them all. The API's document tells the role."""
    roles = {each for each in needed if isinstance(each, Role)}
    kinds = (each for each in needed if isinstance(each, type))
    roles |= {Role(leaf.declared.role) for leaf in named(*kinds)}
    role = max(roles, key=list(Role).index)
    return Security(_has(role), scopes=[role])


# What a handler that reads writes as the type of the parameter that tells it who asks.
Viewer = Annotated[Token, requires(Role.VIEWER)]
Operator = Annotated[Token, requires(Role.OPERATOR)]
Admin = Annotated[Token, requires(Role.ADMIN)]
