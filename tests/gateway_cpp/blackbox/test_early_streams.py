"""Streams that are silent for the heartbeat's interval open early: what their client is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import openai
import pytest

from tests.fakes.fake_control import deployment, tenant
from tests.fakes.fake_replica import FakeCall, hang, hello, refuse
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import (
    Held,
    asked,
    busy,
    every_dialect,
    narrow,
    narrow_limits,
)
from tests.gateway_cpp.blackbox.raw_http import RawClient, chat

EARLY = ("--heartbeat-ms", "50")
BEARER = "Authorization: Bearer sesame\r\n"
ACME = tenant(keys=["sesame"], limits={"requests_per_minute": 600, "tokens_per_minute": 60_000})
OURS = ("x-penstock-", "x-ratelimit-", "openai-")


@asynccontextmanager
async def opened_early(system: System, data: bytes) -> AsyncIterator[tuple[RawClient, set[str]]]:
    """A stream of which nobody has said anything yet, and the names that its head has."""
    async with system.client() as client:
        await client.send(data)
        status, headers = await client.head()
        assert status == 200
        assert headers["content-type"] == "text/event-stream"
        assert await client.chunk() == b": ping\n\n"
        yield client, {name for name in headers if name.startswith(OURS)}


async def rest_of(client: RawClient) -> tuple[bytes, bool]:
    """What still comes, and whether the stream ends as a whole one does."""
    rest = b""
    while data := await client.chunk():
        rest += data
    return rest, data is not None


def comments(rest: bytes) -> dict[str, str]:
    """By name, without the heartbeats; none comes twice."""
    told: dict[str, str] = {}
    for line in rest.decode().splitlines():
        if line.startswith(": x-") or line.startswith(": openai-"):
            name, value = line.removeprefix(": ").split(": ")
            assert name not in told
            told[name] = value
    return told


async def test_what_an_early_head_cannot_say_comes_in_comments(start: Start) -> None:
    held = Held()
    both = deployment(adapters={"pirate": "pirate@1"}, limits=narrow_limits())
    system = await start(*EARLY, scripts=(held,), deployment=both, tenants=[ACME])
    data = chat(BEARER, stream=True, model="mini:pirate")
    held.let_go()
    usual = {name for name in (await system.ask(data)).headers if name.startswith(OURS)}
    async with busy(system), opened_early(system, data) as (client, head):
        held.let_go(2)
        rest, whole = await rest_of(client)
    late = comments(rest)
    assert whole
    assert rest.endswith(b"data: [DONE]\n\n")
    assert head | late.keys() == usual
    assert not head & late.keys()
    assert {n for n in usual if n.startswith("x-ratelimit-")} <= head
    assert {"x-penstock-trace-id", "x-penstock-adapter-version"} <= head
    assert late["x-penstock-backend"] == "mini"
    assert late["x-penstock-replica"] == "r1"
    assert late["x-penstock-backend-version"] == "weights/mini@weights-1+pirate@1"
    assert late["x-penstock-model-version"] == "weights-1"
    assert late["x-penstock-prefix-hit"] == "0"
    assert int(late["x-penstock-queue-ms"]) >= 25  # a heartbeat, which coarse timers count
    assert late["x-penstock-estimated-wait-ms"].isdigit()


async def test_what_an_early_stream_of_no_tenant_says_has_no_rates(start: Start) -> None:
    held = Held()
    system = await start(*EARLY, scripts=(held,), tenants=[ACME])
    async with opened_early(system, chat(stream=True)) as (client, head):
        held.let_go()
        rest, _ = await rest_of(client)
    assert not [name for name in head | comments(rest).keys() if name.startswith("x-ratelimit")]


async def test_comments_name_the_replica_that_answers_in_the_end(start: Start) -> None:
    in_turn = deployment(selection_policy="round_robin")
    system = await start(*EARLY, scripts=(hang, hang), deployment=in_turn)
    async with opened_early(system, chat(stream=True)) as (client, _):
        first, second = sorted(system.replicas, key=lambda replica: -len(replica.calls))
        second.script = hello
        await first.die()
        rest, whole = await rest_of(client)
    assert whole
    assert comments(rest)["x-penstock-replica"] == second.replica_id


async def test_the_openai_sdk_reads_an_early_stream_as_any_other(start: Start) -> None:
    held = Held()
    system = await start(*EARLY, scripts=(held,), deployment=narrow())
    url = system.gateway.base_url + "/v1"
    messages: list[openai.types.chat.ChatCompletionMessageParam]
    messages = [{"role": "user", "content": "hi"}]
    async with (
        busy(system),
        openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        stream = await client.chat.completions.create(model="mini", messages=messages, stream=True)
        held.let_go(2)
        text = [chunk.choices[0].delta.content async for chunk in stream]
    assert "".join(part or "" for part in text) == "Hello"


LATE = narrow(queue_deadline_ms=200)


@every_dialect
async def test_a_late_refusal_comes_in_the_stream_with_a_time_to_come_back(
    start: Start, dialect: str
) -> None:
    system = await start("--heartbeat-ms", "50", scripts=(Held(),), deployment=LATE)
    async with busy(system), system.client() as client:
        await client.send(asked(dialect, stream=True))
        assert (await client.head())[0] == 200
        rest = b""
        while data := await client.chunk():
            rest += data
        assert data is None  # it breaks off: an end would look like success
        assert await client.closed()
    event = rest.rstrip(b"\n").split(b"\n\n")[-1]
    told = json.loads(event.partition(b"data: ")[2])
    error = told["response"]["error"] if dialect == "responses" else told["error"]
    assert "no replica of `mini` had room in time" in error["message"]
    assert 1000 <= error["retry_after_ms"] <= 60_000
    assert await system.drops("queue_deadline") == 1


async def drain(system: System) -> None:
    """Its time is over at once."""
    system.gateway.terminate()


async def delete(system: System) -> None:
    """The deployment is no more."""
    await system.control.publish([], [])


@pytest.mark.parametrize(
    ("then", "code", "retry_after_ms"),
    [(drain, "draining", 1000), (delete, "model_not_found", None)],
)
async def test_whatever_ends_a_late_stream_is_told_in_it_and_no_end_follows(
    start: Start,
    then: Callable[[System], Awaitable[None]],
    code: str,
    retry_after_ms: int | None,
) -> None:
    system = await start(*EARLY, "--drain-ms", "0", scripts=(Held(),), deployment=narrow())
    async with busy(system), opened_early(system, chat(stream=True)) as (client, _):
        await then(system)
        rest, whole = await rest_of(client)
        assert not whole
        assert await client.closed()
    error = json.loads(rest.rstrip(b"\n").split(b"\n\n")[-1].removeprefix(b"data: "))["error"]
    assert error["code"] == code
    assert error.get("retry_after_ms") == retry_after_ms
    assert b"[DONE]" not in rest


async def test_a_replica_that_refuses_a_late_stream_is_told_in_it(start: Start) -> None:
    refuses = asyncio.Event()

    async def late(call: FakeCall) -> None:
        await refuses.wait()
        await refuse(400, "context_length_exceeded")(call)

    system = await start(*EARLY, scripts=(late,))
    async with opened_early(system, chat(stream=True)) as (client, _):
        refuses.set()
        rest, whole = await rest_of(client)
    assert not whole
    assert b'"code":"context_length_exceeded"' in rest
    assert b"retry_after_ms" not in rest
    assert b"[DONE]" not in rest


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
async def test_a_late_refusal_to_who_reads_until_the_end_is_a_reset(
    start: Start, version: str
) -> None:
    system = await start("--heartbeat-ms", "50", scripts=(Held(),), deployment=LATE)
    data = chat("Connection: close\r\n", stream=True).replace(b"HTTP/1.1", version.encode(), 1)

    def read() -> tuple[bytes, bool]:
        seen = b""
        with system.connect() as link:
            link.sendall(data)
            try:
                while part := link.recv(65536):
                    seen += part
            except ConnectionResetError:
                return seen, True
        return seen, False

    async with busy(system):
        seen, reset = await asyncio.to_thread(read)
    assert b"retry_after_ms" in seen
    chunked = b"transfer-encoding: chunked" in seen.lower()
    assert reset or (chunked and not seen.endswith(b"0\r\n\r\n"))
