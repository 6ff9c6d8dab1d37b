"""Replicas that say what no replica may: it costs their own call, and no client sees it."""

from __future__ import annotations

import asyncio

import pytest

from penstock.v1 import inference_pb2 as v1
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, Script, delta, hello
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.raw_http import chat

TURNS = deployment(selection_policy="round_robin")


def telling(**facts: object) -> Script:
    """Says hello behind a head that says this."""

    async def script(call: FakeCall) -> None:
        call.facts = v1.Head(**facts)  # type: ignore[arg-type]
        await hello(call)

    return script


async def end_unasked(call: FakeCall) -> None:
    """Says of a call that nobody cancelled that it is."""
    await call.tell_cancelled()


BAD = [
    telling(content_type="application/json\r\nx-injected: yes"),
    telling(content_type="text/event-stream\r\n\r\nHTTP/1.1 200 OK"),
    telling(status=100),
    telling(status=204),
    telling(status=304),
    telling(status=500),
    telling(prompt_tokens=4_000_000_000),
    end_unasked,
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("bad", BAD)
async def test_a_head_that_is_none_costs_its_replica_the_call_and_another_answers(
    start: Start, bad: Script, streamed: bool
) -> None:
    system = await start(scripts=(bad, bad), deployment=TURNS)
    async with system.client() as client:
        answer = await client.ask(chat(stream=streamed))
        assert answer.status == 502
        assert answer.error["code"] == "upstream_error"
        assert "x-injected" not in answer.headers
        assert [len(replica.calls) for replica in system.replicas] == [1, 1]
        system.replicas[1].script = hello
        for _ in range(2):  # whoever is asked first
            answer = await client.ask(chat(stream=streamed))
            assert answer.status == 200
            assert "x-injected" not in answer.headers


async def test_an_answer_that_is_called_off_in_its_middle_breaks(start: Start) -> None:
    seen = asyncio.Event()

    async def end_unasked_later(call: FakeCall) -> None:
        await call.send(delta("first"))
        await seen.wait()
        await call.tell_cancelled()

    system = await start(scripts=(end_unasked_later,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        assert (await client.head())[0] == 200
        assert await client.chunk() == delta("first")
        seen.set()
        rest = await client.chunk()
        assert rest
        assert b'"code":"upstream_error"' in rest
        assert b"[DONE]" not in rest
