"""Clients that ask one request after the other, all at once in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from penstock.evals.endpoint import needs_trust
from penstock.evals.errors import EvalError

Client = Callable[[httpx.AsyncClient, int], Coroutine[Any, Any, None]]


def run_clients(base_url: str, count: int, client: Client) -> None:
    """Runs `client(http, number)` for so many numbers, until all have ended.

    Raises the `EvalError` of the first that fails; the others are cancelled.
    """
    try:
        asyncio.run(_together(base_url, count, client))
    except* EvalError as group:
        raise group.exceptions[0] from None


async def _together(base_url: str, count: int, client: Client) -> None:
    limits = httpx.Limits(max_connections=None)
    verify = needs_trust(base_url)
    async with (
        httpx.AsyncClient(
            base_url=base_url, timeout=60, trust_env=False, limits=limits, verify=verify
        ) as http,
        asyncio.TaskGroup() as group,
    ):
        for number in range(count):
            group.create_task(client(http, number))
