"""One request, one reading: whatever two servers could read differently is refused and closed."""

from __future__ import annotations

import json

import pytest

from tests.gateway_cpp.blackbox.conftest import System
from tests.gateway_cpp.blackbox.raw_http import CHAT, chat, request
from tests.gateway_cpp.blackbox.wires import OVER_BOTH_WIRES

pytestmark = OVER_BOTH_WIRES

BODY = json.dumps(CHAT).encode()
LENGTH = f"Content-Length: {len(BODY)}\r\n"
LINE = "POST /v1/chat/completions HTTP/1.1\r\n"
HOST = "Host: localhost\r\n"
JSON = "Content-Type: application/json\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
ONE_CHUNK = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"


def message(headers: str, body: bytes, line: str = LINE) -> bytes:
    """A request with exactly these headers."""
    return (line + headers).encode("latin-1") + b"\r\n" + body


DOUBTFUL = {
    "both framings": message(HOST + JSON + LENGTH + CHUNKED, ONE_CHUNK),
    "both framings, the other order": message(HOST + JSON + CHUNKED + LENGTH, ONE_CHUNK),
    "two lengths that differ": message(HOST + LENGTH + "Content-Length: 5\r\n", BODY),
    "the same length twice": message(HOST + LENGTH + LENGTH, BODY),
    "a list of lengths": message(HOST + "Content-Length: 5, 5\r\n", BODY),
    "a negative length": message(HOST + "Content-Length: -1\r\n", BODY),
    "a length with a sign": message(HOST + f"Content-Length: +{len(BODY)}\r\n", BODY),
    "a length in hex": message(HOST + "Content-Length: 0x10\r\n", BODY),
    "a length beyond any number": message(HOST + f"Content-Length: {'9' * 40}\r\n", BODY),
    "an unknown encoding": message(HOST + "Transfer-Encoding: gzip\r\n", ONE_CHUNK),
    "chunked and more": message(HOST + "Transfer-Encoding: gzip, chunked\r\n", ONE_CHUNK),
    "chunked twice": message(HOST + CHUNKED + CHUNKED, ONE_CHUNK),
    "an encoding that only looks chunked": message(
        HOST + "Transfer-Encoding: \x0bchunked\r\n", ONE_CHUNK
    ),
    "a folded header": message(HOST + "X-A: b\r\n c\r\n" + LENGTH, BODY),
    "a blank before the colon": message(HOST + f"Content-Length : {len(BODY)}\r\n", BODY),
    "a header without a colon": message(HOST + "Nonsense\r\n" + LENGTH, BODY),
    "a bare line feed in the head": message(HOST + "X-A: b\n" + LENGTH, BODY),
    "a bare carriage return in the head": message(HOST + "X-A: b\rc\r\n" + LENGTH, BODY),
    "a zero byte in a header": message(HOST + "X-A: b\x00c\r\n" + LENGTH, BODY),
    "no host": message(LENGTH, BODY),
    "two hosts": message(HOST + "Host: u\r\n" + LENGTH, BODY),
    "a chunk size that is no number": message(HOST + JSON + CHUNKED, b"zz\r\n" + BODY),
    "a chunk size with a sign": message(HOST + JSON + CHUNKED, b"+5\r\nhello\r\n0\r\n\r\n"),
    "a chunk size beyond any number": message(HOST + JSON + CHUNKED, b"f" * 40 + b"\r\nx\r\n"),
    "a chunk longer than its size": message(HOST + JSON + CHUNKED, b"2\r\nhello\r\n0\r\n\r\n"),
    "a chunk size line with a bare line feed": message(
        HOST + JSON + CHUNKED, b"5\nhello\r\n0\r\n\r\n"
    ),
    "a bare line feed in a chunk's extension": message(
        HOST + JSON + CHUNKED, b'5;a="\n"\r\nhello\r\n0\r\n\r\n'
    ),
    "a blank after a chunk's size": message(HOST + JSON + CHUNKED, b"5 \r\nhello\r\n0\r\n\r\n"),
    "a chunk's extension without end": message(HOST + JSON + CHUNKED, b"5;" + b"x" * 100_000),
    "a chunk's size of endless zeros": message(HOST + JSON + CHUNKED, b"0" * 100_000),
    "a trailer without end": message(HOST + JSON + CHUNKED, b"0\r\nX: " + b"y" * 100_000),
    "trailers without end": message(HOST + JSON + CHUNKED, b"0\r\n" + b"X: y\r\n" * 20_000),
    "a trailer without a name": message(HOST + JSON + CHUNKED, b"0\r\n: y\r\n\r\n"),
    "a host with a blank": message("Host: a b\r\n" + LENGTH, BODY),
    "a host with a user": message("Host: u@localhost\r\n" + LENGTH, BODY),
    "a target for another host": message(
        HOST + LENGTH, BODY, "POST http://other/v1/chat/completions HTTP/1.1\r\n"
    ),
    "two content types": message(HOST + JSON + "Content-Type: text/plain\r\n" + LENGTH, BODY),
    "a version of its own": message(HOST + LENGTH, BODY, LINE.replace("1.1", "1.7")),
    "HTTP/2 without being asked": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": message(HOST + LENGTH, BODY, "POST /v1/chat/completions\r\n"),
    "a blank in the path": message(HOST + LENGTH, BODY, "POST /v1/chat completions HTTP/1.1\r\n"),
    "no HTTP at all": b"hello there\r\n\r\n",
}


@pytest.mark.parametrize("name", DOUBTFUL)
async def test_a_doubtful_request_is_400_and_closes_the_connection(
    system: System, name: str
) -> None:
    async with system.client() as client:
        await client.send(DOUBTFUL[name] + SMUGGLED)
        answer = await client.response()
        assert answer.status == 400, answer
        assert answer.error["type"] == "invalid_request_error"
        assert answer.headers["connection"] == "close"
        # What follows is never answered.
        assert await client.closed()
    assert not system.replicas[0].calls
    assert (await system.ask(chat())).status == 200


async def test_chunked_bodies_are_taken_however_they_are_cut(system: System) -> None:
    async with system.client() as client:
        for size in (1, 7, len(BODY)):
            parts = [BODY[i : i + size] for i in range(0, len(BODY), size)]
            chunks = b"".join(f"{len(p):X}\r\n".encode() + p + b"\r\n" for p in parts)
            answer = await client.ask(message(HOST + JSON + CHUNKED, chunks + b"0\r\n\r\n"))
            assert answer.status == 200
    assert [call.request.body for call in system.replicas[0].calls] == [BODY] * 3


async def test_chunk_extensions_and_trailers_change_nothing(system: System) -> None:
    chunks = f"{len(BODY):x};a=b\r\n".encode() + BODY + b"\r\n0\r\nX-Trailer: 1\r\n\r\n"
    async with system.client() as client:
        assert (await client.ask(message(HOST + JSON + CHUNKED, chunks))).status == 200
        assert (await client.ask(chat())).status == 200
    assert system.replicas[0].calls[0].request.body == BODY


async def test_trailers_are_no_headers(system: System) -> None:
    trailers = b"X-Request-Id: smuggled\r\nConnection: close\r\nOrigin: http://page\r\n\r\n"
    chunks = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n" + trailers
    async with system.client() as client:
        answer = await client.ask(message(HOST + JSON + CHUNKED, chunks))
        assert answer.status == 200
        assert "x-client-request-id" not in answer.headers
        assert (await client.ask(chat())).status == 200


async def test_a_blank_line_before_a_request_may_come_in_two_parts(system: System) -> None:
    async with system.client() as client:
        assert (await client.ask(chat())).status == 200
        await client.send(b"\r")
        assert (await client.ask(b"\n" + chat())).status == 200


async def test_connection_is_one_list_over_all_its_lines(system: System) -> None:
    async with system.client() as client:
        headers = "Connection: keep-alive\r\nConnection: x, close\r\n"
        answer = await client.ask(chat(headers=headers))
        assert answer.headers["connection"] == "close"
        assert await client.closed()


async def test_a_target_with_scheme_and_host_names_its_path(system: System) -> None:
    async with system.client() as client:
        live = await client.ask(
            b"GET HTTP://localhost/livez HTTP/1.1\r\n" + b"Host: localhost\r\n\r\n"
        )
        assert live.status == 200
        root = await client.ask(
            b"GET http://localhost?x=/livez HTTP/1.1\r\n" + b"Host: localhost\r\n\r\n"
        )
        assert root.status == 404
        any_path = await client.ask(request("OPTIONS", "*"), "OPTIONS")
        assert any_path.status == 204


async def test_expect_from_an_old_client_is_passed_over(system: System) -> None:
    head = f"POST /v1/chat/completions HTTP/1.0\r\n{JSON}Expect: 100-continue\r\n{LENGTH}\r\n"
    async with system.client() as client:
        answer = await client.ask(head.encode() + BODY)
        assert answer.status == 200


async def test_a_request_is_understood_byte_by_byte(system: System) -> None:
    data = chat()
    async with system.client() as client:
        for i in range(len(data)):
            await client.send(data[i : i + 1])
        assert (await client.response()).status == 200
