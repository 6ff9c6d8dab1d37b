"""What platforms that start and restart containers ask a gateway: Kubernetes and SageMaker."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import DONE, FakeCall, event, hang
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat, request

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
TEXT = {"prompt": "hi"}
meant = pytest.mark.parametrize(
    ("body", "path"), [(CHAT, "/v1/chat/completions"), (TEXT, "/v1/completions")]
)


def invoked(body: dict[str, Any]) -> bytes:
    """As SageMaker asks."""
    return request(path="/invocations", body=json.dumps(body).encode())


@meant
async def test_an_invocation_is_what_its_body_says(
    start: Start, body: dict[str, Any], path: str
) -> None:
    system = await start()
    answer = await system.ask(invoked(body))
    assert answer.status == 200
    assert json.loads(answer.body)["model"] == "mini"
    assert "x-penstock-replica" in answer.headers
    sent = system.replicas[0].calls[-1].request
    assert sent.path == path
    assert json.loads(sent.body) == body
    await until(lambda: system.gateway.find_log("request settled", path=path), "it is in the log")


@meant
async def test_an_invocation_may_be_streamed(start: Start, body: dict[str, Any], path: str) -> None:
    async def speak(call: FakeCall) -> None:
        await call.send(event({"object": path}))
        await call.send(DONE)
        await call.finish()

    system = await start(scripts=(speak,))
    answer = await system.ask(invoked(body | {"stream": True}))
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.body.endswith(DONE)


async def test_a_large_invocation_is_read_at_the_side(system: System) -> None:
    long = {"messages": [{"role": "user", "content": "x" * 100_000}]}
    assert (await system.ask(invoked(long))).status == 200
    assert system.replicas[0].calls[-1].request.path == "/v1/chat/completions"


async def test_an_invocation_that_may_be_anything_is_told_what_is_missing(system: System) -> None:
    answer = await system.ask(invoked({"inputs": "hi"}))
    assert answer.status == 400
    assert "'messages' or 'prompt' is missing" in answer.error["message"]
    both = await system.ask(invoked(CHAT | TEXT))
    assert both.status == 400
    assert system.replicas[0].calls == []


async def test_an_invocation_is_refused_where_the_model_cannot_chat(start: Start) -> None:
    limited = deployment()
    limited.endpoints.append("/v1/embeddings")
    system = await start(deployment=limited)
    answer = await system.ask(invoked(CHAT))
    assert (answer.status, answer.error["code"]) == (400, "unsupported_endpoint")


async def test_clients_do_not_use_up_what_tells_whether_it_lives(start: Start) -> None:
    system = await start("--threads", "1", "--max-connections", "2", scripts=(hang,))
    async with AsyncExitStack() as stack:
        for _ in range(2):
            client = await stack.enter_async_context(system.client())
            await client.send(chat())
        await until(lambda: len(system.replicas[0].calls) == 2, "all places are taken")
        for path in ("/ping", "/livez", "/readyz", "/startupz"):
            assert (await system.ask(request("GET", path))).status == 200
        assert (await system.ask(chat())).status == 503
        # Nor do those who ask so take each other's places.
        askers = [system.ask(request("GET", "/ping")) for _ in range(50)]
        assert {answer.status for answer in await asyncio.gather(*askers)} == {200}
