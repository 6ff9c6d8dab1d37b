"""Every endpoint, by all its names: what reaches the replica, and what the client is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from penstock.v1 import inference_pb2 as v1
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import FakeCall, hang, refuse
from tests.fakes.spoken import SPOKEN
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import request

# Each first name, and what clients may say instead.
NAMES = {
    "/v1/chat/completions": (),
    "/v1/completions": (),
    "/v1/responses": (),
    "/v1/responses/input_tokens": (),
    "/v1/messages": (),
    "/v1/messages/count_tokens": (),
    "/v1/embeddings": (),
    "/v1/score": ("/score",),
    "/v1/rerank": ("/rerank", "/v2/rerank"),
    "/classify": ("/v1/classify",),
    "/pooling": ("/v1/pooling",),
    "/tokenize": ("/v1/tokenize",),
    "/detokenize": ("/v1/detokenize",),
}
SAID = [(name, first) for first, others in NAMES.items() for name in (first, *others)]
# Good enough for all of them, and of a shape that nobody would write anew.
BODY = b'{ "model":"mini", "messages":[{"role":"user"}],"prompt":"a" ,"input":"a","x":1e2}'
NAMELESS = BODY.replace(b'"model":"mini", ', b"")
every_endpoint = pytest.mark.parametrize("path", NAMES)


async def answer(call: FakeCall) -> None:
    """One JSON object."""
    await call.send(b'{"ok":true}')
    await call.finish()


def sent_to(system: System) -> v1.CallRequest:
    """The last call of its first replica."""
    return system.replicas[0].calls[-1].request


@pytest.mark.parametrize(("name", "first"), SAID)
async def test_each_name_reaches_the_replica_as_the_first_with_the_body_untouched(
    start: Start, name: str, first: str
) -> None:
    system = await start(scripts=(answer,))
    response = await system.ask(request(path=name + "?beta=true", body=BODY))
    assert response.status == 200
    assert response.body == b'{"ok":true}'
    assert sent_to(system).path == first
    assert sent_to(system).method == "POST"
    assert sent_to(system).body == BODY
    assert sent_to(system).model == "mini"


@every_endpoint
async def test_the_only_deployment_is_meant_where_no_model_is_named(
    start: Start, path: str
) -> None:
    system = await start(scripts=(answer,))
    assert (await system.ask(request(path=path, body=NAMELESS))).status == 200
    assert sent_to(system).model == "mini"
    assert sent_to(system).body == NAMELESS
    version = await system.control.publish([deployment(), deployment("maxi")], [])
    await system.has_routes(version)
    unclear = await system.ask(request(path=path, body=NAMELESS))
    assert unclear.status == 400
    assert b"maxi, mini" in unclear.body


@every_endpoint
async def test_another_replica_answers_where_the_first_cannot(start: Start, path: str) -> None:
    broken = refuse(502, "upstream_error", retry=True)
    system = await start(scripts=(broken, broken))
    system.replicas[1].script = answer
    for _ in range(4):
        assert (await system.ask(request(path=path, body=BODY))).body == b'{"ok":true}'


@every_endpoint
async def test_the_engine_stops_when_the_client_leaves(start: Start, path: str) -> None:
    system = await start(scripts=(hang,))
    async with system.client() as client:
        await client.send(request(path=path, body=BODY))
        await until(lambda: system.replicas[0].calls, "the call arrives")
    await asyncio.wait_for(system.replicas[0].calls[0].cancelled.wait(), 20)


@pytest.mark.parametrize("path", SPOKEN)
async def test_the_engine_stops_when_the_reader_of_a_stream_leaves(start: Start, path: str) -> None:
    spoken = SPOKEN[path]

    async def half(call: FakeCall) -> None:
        await call.send(spoken.begin + spoken.text("first"))
        await call.cancelled.wait()

    system = await start(scripts=(half,))
    async with system.client() as client:
        body = json.dumps(spoken.body | {"stream": True}).encode()
        await client.send(request(path=path, body=body))
        await client.head()
        assert b"first" in (await client.chunk() or b"")
    await asyncio.wait_for(system.replicas[0].calls[0].cancelled.wait(), 20)


@every_endpoint
async def test_what_a_model_cannot_do_is_refused_with_what_it_can(start: Start, path: str) -> None:
    limited = deployment()
    limited.endpoints.append("/tokenize" if path != "/tokenize" else "/detokenize")
    system = await start(scripts=(answer,), deployment=limited)
    response = await system.ask(request(path=path, body=BODY))
    assert response.status == 400
    assert f"`mini` does not answer at {path}. It serves".encode() in response.body
    assert limited.endpoints[0].encode() in response.body
    assert not system.replicas[0].calls
    if "messages" in path:
        assert json.loads(response.body)["error"]["type"] == "invalid_request_error"
    else:
        assert response.error["code"] == "unsupported_endpoint"
        assert response.error["param"] == "model"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/audio/speech"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/files"),
        ("GET", "/v1/batches"),
        ("GET", "/v1/realtime"),
        ("POST", "/v1/moderations"),
        ("POST", "/v1/assistants"),
        ("GET", "/"),
    ],
)
async def test_what_nobody_offers_is_404_with_what_is_served(
    system: System, method: str, path: str
) -> None:
    response = await system.ask(request(method, path), method)
    assert response.status == 404
    assert response.error["code"] == "not_found"
    for name in (*NAMES, "/v1/models/{id}"):
        assert name in response.error["message"]


@pytest.mark.parametrize(
    ("method", "rest"),
    [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")],
)
async def test_responses_are_not_kept(system: System, method: str, rest: str) -> None:
    response = await system.ask(request(method, f"/v1/responses/resp_1{rest}"), method)
    assert response.status == 404
    assert "keeps no responses" in response.error["message"]


REFUSED: dict[str, tuple[int, Callable[[str], bytes]]] = {
    "wrong method": (405, lambda path: request("GET", path)),
    "no JSON": (400, lambda path: request(path=path, body=b"{")),
    "unknown model": (
        404,
        lambda path: request(path=path, body=BODY.replace(b"mini", b"none")),
    ),
    "wrong host": (
        421,
        lambda path: request(path=path, body=BODY).replace(b"localhost", b"elsewhere"),
    ),
    "content type": (
        415,
        lambda path: request(path=path, body=BODY).replace(b"application/json", b"text/plain"),
    ),
    "too large": (
        413,
        lambda path: request(path=path, body=None, headers="Content-Length: 99999999999\r\n"),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
async def test_users_of_anthropics_api_read_errors_in_its_words(
    system: System, path: str, why: str
) -> None:
    status, wrong = REFUSED[why]
    response = await system.ask(wrong(path))
    assert response.status == status, response
    body = json.loads(response.body)
    assert body["type"] == "error"
    assert body["error"]["type"] in (
        *("invalid_request_error", "not_found_error", "request_too_large"),
    )
    assert body["error"]["message"]
    assert body["request_id"] == response.headers["x-request-id"] == response.headers["request-id"]
