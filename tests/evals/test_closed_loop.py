from __future__ import annotations

import asyncio

import httpx
import pytest

from penstock.evals.closed_loop import run_clients
from penstock.evals.errors import EvalError


def test_every_client_runs_to_its_end() -> None:
    ended: list[int] = []

    async def client(http: httpx.AsyncClient, number: int) -> None:
        await asyncio.sleep(0)
        ended.append(number)

    run_clients("http://127.0.0.1:1", 3, client)
    assert sorted(ended) == [0, 1, 2]


def test_the_first_clients_error_ends_the_others() -> None:
    async def client(http: httpx.AsyncClient, number: int) -> None:
        if number == 1:
            raise EvalError("the gateway answered 500")
        await asyncio.Event().wait()

    with pytest.raises(EvalError, match="the gateway answered 500"):
        run_clients("http://127.0.0.1:1", 3, client)
