"""Prompts that are read off vLLM's serving layer."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.replica.values import Call
from penstock.replica.vllm.microserving.reading import prompts_of


async def test_vllm_is_told_that_the_client_is_gone_where_the_caller_leaves() -> None:
    entered, heard = asyncio.Event(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        entered.set()
        while "http.disconnect" not in heard:
            heard.append((await receive())["type"])

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(prompts_of(app, Call("c1", "/v1/completions", b"{}", "m")))
        await entered.wait()
        reading.cancel()
    assert heard[-1] == "http.disconnect"
