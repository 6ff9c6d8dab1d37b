"""What every route that changes something takes, as one parameter: who asks, why, on what
condition, and whether it is only tried. A handler hands it to the manager that makes the change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response, status
from pydantic import BeforeValidator

from penstock.control.admin.auth import requires
from penstock.control.admin.fields import Printable
from penstock.control.admin.idempotency import marks_of
from penstock.control.admin.parameters import DryRun
from penstock.control.managers.write import Write, tag_of
from penstock.control.state.rollout.revision import LONGEST_REASON
from penstock.control.state.tenancy.tokens import Role, Token

IfMatch = Annotated[
    str | None,
    Header(description="the ETag that the caller read, or its generation; 412: it has changed"),
]
IfNoneMatch = Annotated[str | None, Header(description="*: create only; 412 where it exists")]


AbortCanary = Annotated[
    bool,
    Query(
        description="abort the canaries that have what this changes; without it: 409 `canary-owns`"
    ),
]


HandOver = Annotated[
    bool,
    Query(
        description="streams of replicas that leave for it go on at others at once; without it:"
        " when their replica's time to drain is up"
    ),
]


def _as_utf8(text: str) -> str:
    """Headers come as Latin-1; what is meant is UTF-8, where it is any."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


Reason = Annotated[
    Printable,
    BeforeValidator(_as_utf8),
    Header(
        alias="x-penstock-reason",
        max_length=LONGEST_REASON,
        description="why; kept in the audit trail, and with the revision that the change makes",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Write):
    """A change that somebody asks this API for, and the headers of the answer."""

    response: Response

    def tell(self, known: object, made_at: str = "") -> None:
        """The ETag of what was changed, and its place where it was `made`. What was only tried has
        no ETag: it would be that of somebody else's next change."""
        if not self.dry_run:
            tagged(self.response, known)
        if made_at:
            self.response.headers["location"] = made_at
            self.response.status_code = status.HTTP_201_CREATED

    def tell_secret(self) -> None:
        """That the answer is to be kept by nobody but the caller."""
        self.response.headers["cache-control"] = "no-store"


def tagged(response: Response, known: object) -> None:
    """The ETag of what is shown."""
    response.headers["etag"] = tag_of(known)


def creates(*needed: Role | type) -> Any:
    """Of a parameter `Asked` of a route that makes something new: a token of this role, or one that
    may set the fields of these."""
    known = requires(*needed)

    async def asked(
        request: Request,
        response: Response,
        caller: Token = known,
        reason: Reason = "",
        dry_run: DryRun = False,
    ) -> Asked:
        return Asked(
            caller.name,
            caller.role,
            reason,
            dry_run,
            together=marks_of(request),
            response=response,
        )

    return Depends(asked)


def changes(*needed: Role | type) -> Any:
    """Likewise, of something that is there."""
    new = creates(*needed)

    async def asked(made: Asked = new, if_match: IfMatch = None) -> Asked:
        return replace(made, if_match=if_match)

    return Depends(asked)


def puts(*needed: Role | type) -> Any:
    """Likewise, of something that may be there."""
    there = changes(*needed)

    async def asked(made: Asked = there, if_none_match: IfNoneMatch = None) -> Asked:
        return replace(made, if_none_match=if_none_match)

    return Depends(asked)


def over_canaries(there: Any) -> Any:
    """Likewise, of what a canary may have for itself while it goes on."""

    async def asked(made: Asked = there, abort_canary: AbortCanary = False) -> Asked:
        return replace(made, abort_canary=abort_canary)

    return Depends(asked)


def handing_over(there: Any) -> Any:
    """Likewise, of what replicas may have to leave for."""

    async def asked(made: Asked = there, hand_over: HandOver = False) -> Asked:
        return replace(made, hand_over=hand_over)

    return Depends(asked)


# What a handler writes as the type of its parameter, where operators may ask.
Create = Annotated[Asked, creates(Role.OPERATOR)]
Change = Annotated[Asked, changes(Role.OPERATOR)]
Put = Annotated[Asked, puts(Role.OPERATOR)]
Drains = Annotated[Asked, handing_over(changes(Role.OPERATOR))]
OverCanaries = Annotated[Asked, over_canaries(changes(Role.OPERATOR))]
