"""Query parameters of the admin API: one that a route does not know is refused, never ignored."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from fastapi.dependencies.utils import get_flat_dependant

from penstock.control.errors import InvalidInput

_Value = TypeVar("_Value")

MOST = 1000  # of a page
LONGEST_NAME = 100  # characters of a name that are repeated to whoever sent it

DryRun = Annotated[bool, Query(description="check everything and change nothing")]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list that is sorted by name: a large fleet's list is a megabyte."""

    limit: int | None = None
    after: str | None = None

    def of(self, named: Mapping[Any, _Value]) -> list[_Value]:
        """What is on this page, by name."""
        names = sorted(named)
        first = 0 if self.after is None else bisect_right(names, self.after)
        return [named[name] for name in names[first:][: self.limit]]

    def along(self, listed: Iterable[_Value], name: Callable[[_Value], object]) -> list[_Value]:
        """What is on this page of a list that has an order of its own. Raises `InvalidInput` where
        nothing on it has the name that the page before ended with."""
        found = list(listed)
        if self.after is not None:
            names = [str(name(each)) for each in found]
            if self.after not in names:
                raise InvalidInput(f"after is {self.after!r}, which is not in this list")
            found = found[names.index(self.after) + 1 :]
        return found[: self.limit]


def _page(
    limit: Annotated[int | None, Query(ge=1, le=MOST, description="at most; all without")] = None,
    after: Annotated[
        str | None, Query(description="only behind this name, the last of the page before")
    ] = None,
) -> Page:
    return Page(limit, after)


Paged = Annotated[Page, Depends(_page)]


def known_parameters(request: Request) -> None:
    """Raises `InvalidInput` for a parameter that would change nothing: who sent `dry_run` to a
    route without it has not asked for a change."""
    taken = get_flat_dependant(request.scope["route"].dependant).query_params
    names = sorted(field.alias for field in taken)
    for name in request.query_params:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "there are none"
            raise InvalidInput(f"no query parameter {name[:LONGEST_NAME]!r} here: {there}")
