"""Requests that are wrong: the right status, an OpenAI-shaped error, and nobody else disturbed."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.fakes.fake_replica import DONE, FakeCall, delta
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, RawClient, chat, request

MESSAGES = CHAT["messages"]


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        (b"", None, "invalid_json"),
        (b"hello", None, "invalid_json"),
        (b'{"model":"mini","messages":[{"role":"user"}', None, "invalid_json"),
        (b'{"model":"mini","messages":[{}]}garbage', None, "invalid_json"),
        (b'{"model":"mini","messages":[{}],"x":"\xff"}', None, "invalid_json"),
        (b"[1,2]", None, "invalid_json"),
        (b"[" * 100_000, None, "invalid_json"),
        (json.dumps({"model": 5, "messages": MESSAGES}).encode(), "model", "invalid_type"),
        (json.dumps({"model": "mini"}).encode(), "messages", "missing_required_parameter"),
        (json.dumps({"model": "mini", "messages": []}).encode(), "messages", "invalid_value"),
        (json.dumps({"model": "mini", "messages": "hi"}).encode(), "messages", "invalid_type"),
        (json.dumps(CHAT | {"stream": "yes"}).encode(), "stream", "invalid_type"),
        (json.dumps(CHAT | {"max_tokens": ["ten"]}).encode(), "max_tokens", "invalid_type"),
        (json.dumps(CHAT | {"max_tokens": -5}).encode(), "max_tokens", "invalid_value"),
        (json.dumps(CHAT | {"n": 0}).encode(), "n", "invalid_value"),
    ],
)
async def test_a_bad_body_is_400_and_the_connection_lives_on(
    system: System, body: bytes, param: str | None, code: str
) -> None:
    async with system.client() as client:
        answer = await client.ask(request(body=body))
        assert answer.status == 400
        assert answer.error["type"] == "invalid_request_error"
        assert answer.error["param"] == param
        assert answer.error["code"] == code
        assert answer.headers["x-should-retry"] == "false"
        assert answer.headers["x-request-id"].startswith("req_")
        assert (await client.ask(chat())).status == 200
    assert len(system.replicas[0].calls) == 1


async def test_completions_without_a_prompt_is_400(system: System) -> None:
    answer = await system.ask(request(path="/v1/completions", body=json.dumps(CHAT).encode()))
    assert answer.status == 400
    assert answer.error["param"] == "prompt"


@pytest.mark.parametrize("model", ["maxi", "mini:nobody", "mini:"])
async def test_an_unknown_model_is_404_and_names_what_exists(system: System, model: str) -> None:
    answer = await system.ask(chat(model=model))
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"
    assert answer.error["param"] == "model"
    assert "mini, mini:pirate" in answer.error["message"]
    assert not system.replicas[0].calls


async def test_a_20_mb_body_is_413_and_the_connection_is_closed(system: System) -> None:
    body = json.dumps(CHAT | {"x": "y" * 20_000_000}).encode()
    async with system.client() as client:
        async with asyncio.TaskGroup() as group:
            group.create_task(client.send(request(body=body)))
            answer = await client.response()
        assert answer.status == 413
        assert answer.error["code"] == "request_too_large"
        assert await client.closed()
    assert (await system.ask(chat())).status == 200


async def test_a_20_mb_chunked_body_is_413(system: System) -> None:
    head = request(headers="Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n")
    part = b"100000\r\n" + b"y" * 0x100000 + b"\r\n"
    async with system.client() as client, asyncio.TaskGroup() as group:
        group.create_task(client.send(head + part * 20 + b"0\r\n\r\n"))
        assert (await client.response()).status == 413


async def test_a_body_at_the_limit_passes(start: Start) -> None:
    system = await start("--body-limit-bytes", "1000")
    body = json.dumps(CHAT).encode()
    assert (await system.ask(request(body=body + b" " * (1000 - len(body))))).status == 200
    assert (await system.ask(request(body=body + b" " * (1001 - len(body))))).status == 413


@pytest.mark.parametrize("parts", [3, 400_000])
async def test_a_body_of_too_many_parts_never_gets_to_a_replica(start: Start, parts: int) -> None:
    system = await start("--body-parts", "2")
    message = {"role": "user", "content": [{"type": "text", "text": ""}] * parts}
    body = json.dumps({"model": "mini", "messages": [message]}).encode()
    refused = await system.ask(request(body=body))
    assert (refused.status, refused.error["param"]) == (400, "messages")
    assert all(word in refused.error["message"] for word in (str(parts), "2", "--body-parts"))
    alike = json.loads((await system.ask(request(path="/v1/messages", body=body))).body)
    assert (alike["type"], alike["error"]["type"]) == ("error", "invalid_request_error")
    assert not system.replicas[0].calls


async def test_an_unknown_path_is_404(system: System) -> None:
    answer = await system.ask(request("GET", "/v2/chat"))
    assert answer.status == 404
    assert answer.error["type"] == "invalid_request_error"
    assert "/v2/chat" in answer.error["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/completions", "POST"),
        ("POST", "/v1/models", "GET"),
        ("PUT", "/livez", "GET"),
        ("BREW", "/readyz", "GET"),
    ],
)
async def test_a_wrong_method_is_405_and_says_which_is_right(
    system: System, method: str, path: str, allowed: str
) -> None:
    answer = await system.ask(request(method, path, body=b"{}"))
    assert answer.status == 405
    assert answer.error["code"] == "method_not_allowed"
    assert allowed in answer.headers["allow"].split(", ")


@pytest.mark.parametrize(
    "kind",
    [
        "multipart/form-data; boundary=x",
        "image/png",
        "text/plain",
        "application/x-www-form-urlencoded",
    ],
)
async def test_a_content_type_that_cannot_be_json_is_415(system: System, kind: str) -> None:
    body = json.dumps(CHAT).encode()
    text = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    text += f"Content-Length: {len(body)}\r\n\r\n"
    answer = await system.ask(text.encode() + body)
    assert answer.status == 415
    assert answer.error["type"] == "invalid_request_error"


async def test_bad_requests_disturb_no_running_stream(start: Start) -> None:
    released = asyncio.Event()

    async def slow(call: FakeCall) -> None:
        await call.send(delta("a"))
        await released.wait()
        await call.send(delta("b") + DONE, events=2)
        await call.finish()

    system = await start(scripts=(slow,))
    bad = [
        request(body=b"nonsense"),
        request(body=b'{"model":"maxi","messages":[{}]}'),
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        request("GET", "/nothing"),
    ]
    async with system.client() as stream:
        await stream.send(chat(stream=True))
        assert (await stream.head())[0] == 200
        assert await stream.chunk() == delta("a")
        for _ in range(20):
            for data in bad:
                async with RawClient(system.gateway.port) as client:
                    await client.send(data)
                    if data.startswith(b"POST") or data.startswith(b"G"):
                        assert (await client.response()).status in (400, 404)
        released.set()
        assert await stream.chunk() == delta("b") + DONE
        assert await stream.chunk() == b""
    assert len(system.replicas[0].calls) == 1
