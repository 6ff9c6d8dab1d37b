"""If-Match and If-None-Match: a change is made to what the caller has seen, or not at all. Pure."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

from penstock.control.errors import InvalidInput, RevisionMismatch
from penstock.control.state.deployment import Deployment

IfMatch = Annotated[
    str | None,
    Header(description="ETag or generation that the caller read; 412 where it has changed"),
]
IfNoneMatch = Annotated[
    str | None, Header(description="*: create only; 412 where the deployment exists")
]


def etag(deployment: Deployment) -> str:
    """Names one generation of one deployment: a namesake made later has another."""
    return f'"{deployment.generation}-{deployment.uid}"'


def check_match(known: Deployment | None, if_match: str | None) -> None:
    """Raises `RevisionMismatch` where the deployment is not as the caller read it."""
    if if_match is None:
        return
    wanted = _bare(if_match)
    if wanted == "*" and known is not None:
        return
    generation, _, uid = wanted.partition("-")
    if wanted != "*" and not (generation.isascii() and generation.isdigit()):
        raise InvalidInput(
            f"If-Match is {if_match!r}: give the deployment's ETag, or its generation, such as 3"
        )
    if (
        known is None
        or generation.lstrip("0") != str(known.generation)
        or uid not in ("", known.uid)
    ):
        found = f"at generation {etag(known)}" if known else "not there"
        raise RevisionMismatch(f"the deployment is {found}, not {wanted}: read it again")


def check_none_match(known: Deployment | None, if_none_match: str | None) -> None:
    """Raises `RevisionMismatch` where the deployment exists, though it was to be created."""
    if if_none_match is None or known is None:
        return
    if _bare(if_none_match) in ("*", _bare(etag(known))):
        raise RevisionMismatch(
            f"deployment {known.spec.name!r} exists, at generation {etag(known)}: leave "
            "If-None-Match out to change it"
        )


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/").strip('"')
