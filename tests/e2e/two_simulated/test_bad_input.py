"""Bad requests get an OpenAI-shaped error with the right status, and disturb nothing else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.system import System

GOOD = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
CHAT = "/v1/chat/completions"


@pytest.fixture
def http(two_simulated: System) -> Iterator[httpx.Client]:
    """A plain HTTP client on the gateway."""
    with httpx.Client(base_url=two_simulated.gateway_url, timeout=30) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_else_is_disturbed(two_simulated: System, http: httpx.Client) -> Iterator[None]:
    """The same replicas, and a good request that works, after whatever was sent."""
    before = {r["pid"] for r in two_simulated.replicas()}
    yield
    assert http.post(CHAT, json=GOOD).status_code == 200
    assert {r["pid"] for r in two_simulated.replicas()} == before


def assert_openai_error(body: Any, *, words: str = "") -> None:
    """All four keys of an OpenAI error, and a message for a person."""
    assert set(body["error"]) == {"message", "type", "param", "code"}, body
    assert words in body["error"]["message"], body


@dataclass(frozen=True)
class Case:
    """A body that must be refused."""

    body: bytes
    status: int
    words: str


def without(**changes: Any) -> bytes:
    """The good body with some fields changed; None takes one out."""
    changed = {**GOOD, **changes}
    return json.dumps({k: v for k, v in changed.items() if v is not None}).encode()


CASES = {
    "not JSON": Case(b"{nope", 400, "JSON"),
    "empty": Case(b"", 400, "JSON"),
    "an array": Case(b"[]", 400, "object"),
    "no messages": Case(without(messages=None), 400, "messages"),
    "empty messages": Case(without(messages=[]), 400, "messages"),
    "messages of the wrong type": Case(without(messages="hello"), 400, "messages"),
    "model of the wrong type": Case(without(model=7), 400, "model"),
    "stream of the wrong type": Case(without(stream="yes"), 400, "stream"),
    "max_tokens of the wrong type": Case(without(max_tokens="many"), 400, "max_tokens"),
    "unknown model": Case(without(model="gpt-9"), 404, "gpt-9"),
    "unknown adapter": Case(without(model="sim:nope"), 404, "sim:nope"),
    "20 MB": Case(without(user="x" * 20_000_000), 413, "16"),
    "deep nesting": Case(b'{"model":"sim","messages":' + b"[" * 100_000, 400, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_body_is_told_what_is_wrong(http: httpx.Client, name: str) -> None:
    case = CASES[name]
    reply = http.post(CHAT, content=case.body, headers={"content-type": "application/json"})
    assert reply.status_code == case.status, reply.text
    assert reply.headers["x-request-id"]
    assert_openai_error(reply.json(), words=case.words)


def test_unknown_paths_and_methods_are_openai_errors_too(http: httpx.Client) -> None:
    assert http.post("/v1/nope", json=GOOD).status_code == 404
    assert_openai_error(http.post("/v1/nope", json=GOOD).json(), words="/v1/nope")
    assert http.get(CHAT).status_code == 405
    assert http.get(CHAT).headers["allow"]


SMUGGLING = {
    "length and chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a folded header": b"Content-Length: 5\r\nX-A: b\r\n c\r\n\r\nhello",
    "an unknown coding": b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 5\r\n\r\nhello",
    "a negative length": b"Content-Length: -5\r\n\r\nhello",
    "a bad chunk size": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_an_ambiguous_framing_is_refused_and_the_connection_closed(
    two_simulated: System, name: str
) -> None:
    second = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", two_simulated.gateway_port), timeout=10) as raw:
        raw.sendall(
            b"POST "
            + CHAT.encode()
            + b" HTTP/1.1\r\nHost: localhost\r\n"
            + SMUGGLING[name]
            + second
        )
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1, "the smuggled request was answered"
    assert_openai_error(json.loads(answer.partition(b"\r\n\r\n")[2]))
