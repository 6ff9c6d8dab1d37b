"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


async def eventually(look: Callable[[], Awaitable[_T]], what: str, seconds: float = 60) -> _T:
    """The first true value that `look` gives; fails with `what` and the last value."""
    found: object = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                value = await look()
                found = value
                if value:
                    return value
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}; last: {found}") from None
