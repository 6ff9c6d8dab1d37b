"""If-Match and If-None-Match: a change is made to what the caller has seen, or not at all. Pure."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import Header

from penstock.control.errors import Code, InvalidInput, PenstockError

IfMatch = Annotated[
    str | None,
    Header(description="ETag or generation that the caller read; 412 where it has changed"),
]
IfNoneMatch = Annotated[str | None, Header(description="*: create only; 412 where it exists")]


class Versioned(Protocol):
    """What an ETag names: a deployment, a tenant."""

    @property
    def uid(self) -> str:
        """Tells namesakes apart."""

    @property
    def generation(self) -> int:
        """Grows with every change."""


def etag(known: Versioned) -> str:
    """Names one generation of one thing: a namesake made later has another."""
    return f'"{known.generation}-{known.uid}"'


def check_match(known: Versioned | None, if_match: str | None) -> None:
    """Raises `revision-mismatch` where it is not as the caller read it."""
    if if_match is None:
        return
    wanted = _bare(if_match)
    if wanted == "*" and known is not None:
        return
    generation, _, uid = wanted.partition("-")
    if wanted != "*" and not (generation.isascii() and generation.isdigit()):
        raise InvalidInput(
            f"If-Match is {if_match!r}: give the ETag that you read, or the generation, such as 3"
        )
    if (
        known is None
        or generation.lstrip("0") != str(known.generation)
        or uid not in ("", known.uid)
    ):
        found = f"at generation {etag(known)}" if known else "not there"
        raise PenstockError(
            f"what you change is {found}, not {wanted}: read it again", Code.REVISION_MISMATCH
        )


def check_none_match(known: Versioned | None, if_none_match: str | None, what: str) -> None:
    """Raises `revision-mismatch` where it exists, though it was to be created."""
    if if_none_match is None or known is None:
        return
    if _bare(if_none_match) in ("*", _bare(etag(known))):
        raise PenstockError(
            f"{what} exists, at generation {etag(known)}: leave If-None-Match out to change it",
            Code.REVISION_MISMATCH,
        )


def check_put(
    known: Versioned | None, if_match: str | None, if_none_match: str | None, what: str
) -> None:
    """Raises `revision-mismatch` where either condition of a PUT does not hold."""
    check_match(known, if_match)
    check_none_match(known, if_none_match, what)


def check_tag(tag: str, if_match: str | None, if_none_match: str | None, what: str) -> None:
    """Both conditions for what has no generation: `tag` names all that is shown of it, and is empty
    where it is not there. Raises `revision-mismatch`."""
    found = _bare(tag)
    if if_match is not None and (not found or _bare(if_match) not in ("*", found)):
        raise PenstockError(
            f"{what} is {f'at {tag}' if found else 'not there'}, not {if_match}: read it again",
            Code.REVISION_MISMATCH,
        )
    if if_none_match is not None and found and _bare(if_none_match) in ("*", found):
        raise PenstockError(
            f"{what} exists: leave If-None-Match out to change it", Code.REVISION_MISMATCH
        )


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/").strip('"')
