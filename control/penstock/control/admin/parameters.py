"""Query parameters of the admin API: one that a route does not know is refused, never ignored."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.dependencies.utils import get_flat_dependant

from penstock.control.errors import InvalidInput

LONGEST_NAME = 100  # characters of a name that are repeated to whoever sent it

DryRun = Annotated[bool, Query(description="check everything and change nothing")]


def known_parameters(request: Request) -> None:
    """Raises `InvalidInput` for a parameter that would change nothing: who sent `dry_run` to a
    route without it has not asked for a change."""
    taken = get_flat_dependant(request.scope["route"].dependant).query_params
    names = sorted(field.alias for field in taken)
    for name in request.query_params:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "there are none"
            raise InvalidInput(f"no query parameter {name[:LONGEST_NAME]!r} here: {there}")


__all__ = ["DryRun", "known_parameters"]
