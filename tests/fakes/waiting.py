"""Waiting for a condition of real processes, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def until(look: Callable[[], _T | None], what: str, *, seconds: float = 60) -> _T:
    """The first true value of `look`; fails with `what` and the last value when time is up."""
    found: object = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                value = look()
                found = value
                if value:
                    return value
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}; last: {found!r}") from None
