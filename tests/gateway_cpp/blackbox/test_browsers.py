"""Web pages of other origins: which may call, what they are told first, what they may read."""

from __future__ import annotations

import json

import pytest

from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, RawClient, Response, chat, request

ORIGIN = "https://chat.example"
PAGE = f"Origin: {ORIGIN}\r\n"
PREFLIGHT = (
    f"{PAGE}Access-Control-Request-Method: POST\r\n"
    "Access-Control-Request-Headers: authorization, content-type\r\n"
)
# What a page sees of an answer without being told that it may.
SAFELISTED = {"cache-control", "content-length", "content-type"}
# What is the browser's own, and no page's business.
HOP = {"connection", "transfer-encoding", "vary", "x-accel-buffering"}
BIG = "x" * 40_000  # over the limit of a head


def may_read(answer: Response, origin: str = ORIGIN) -> bool:
    """Whether a browser shows this answer to a page of that origin."""
    told = answer.headers.get("access-control-allow-origin")
    return told == origin and answer.headers.get("vary") == "origin"


@pytest.mark.parametrize("flag", [ORIGIN, "*"])
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/models", "/no/such/path", "/metrics"]
)
async def test_a_page_may_ask_first_on_any_path(start: Start, flag: str, path: str) -> None:
    system = await start("--cors-origin", flag)
    answer = await system.ask(request("OPTIONS", path, headers=PREFLIGHT), "OPTIONS")
    assert answer.status == 204
    assert may_read(answer)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization, content-type"


async def test_each_named_origin_is_told_that_it_may(start: Start) -> None:
    others = "http://localhost:3000"
    system = await start("--cors-origin", ORIGIN, "--cors-origin", others)
    for origin in (ORIGIN, others):
        headers = f"Origin: {origin}\r\n"
        assert may_read(await system.ask(chat(headers=headers)), origin)
        assert may_read(await system.ask(chat(headers=headers, stream=True)), origin)
    assert (await system.ask(chat(headers="Origin: https://evil.example\r\n"))).status == 403
    plain = await system.ask(chat())
    assert "access-control-allow-origin" not in plain.headers
    assert plain.headers["vary"] == "origin", "a cache must not keep it for a page"


async def test_a_page_reads_every_error(start: Start) -> None:
    system = await start("--cors-origin", ORIGIN, "--body-limit-bytes", "1000")
    large = json.dumps(CHAT).encode() + b" " * 1000
    plain_text = chat(headers=PAGE).replace(b"application/json", b"text/plain")
    refused = {
        400: request(body=b"nonsense", headers=PAGE),
        404: request("GET", "/nothing", headers=PAGE),
        405: request("DELETE", "/v1/models", headers=PAGE),
        413: request(body=large, headers=PAGE),
        415: plain_text,
        421: chat(headers=PAGE).replace(b"Host: localhost", b"Host: attacker.example"),
        431: request("GET", "/v1/models", headers=f"{PAGE}X-Big: {BIG}\r\n"),
    }
    for status, data in refused.items():
        answer = await system.ask(data)
        assert answer.status == status
        assert may_read(answer), answer
        assert answer.error["message"]


async def test_a_head_that_never_ends_is_told_to_its_page(start: Start) -> None:
    system = await start("--cors-origin", ORIGIN)
    begun = request("GET", "/v1/models", headers=f"{PAGE}X-Big: {BIG}").removesuffix(b"\r\n")
    answer = await system.ask(begun)
    assert answer.status == 431
    assert may_read(answer)


async def test_a_page_sees_every_header_that_an_answer_has(start: Start) -> None:
    system = await start("--cors-origin", "*")
    headers = f"{PAGE}X-Client-Request-Id: mine\r\n"
    unknown = json.dumps(CHAT | {"model": "nobody"}).encode()
    asked = (
        chat(headers=headers),
        chat(headers=headers, stream=True),
        request(body=unknown, headers=headers),
        request("PUT", "/v1/models", headers=headers),
        request("GET", "/v1/models", headers=headers),
    )
    for data in asked:
        answer = await system.ask(data)
        exposed = set(answer.headers["access-control-expose-headers"].split(", "))
        own = {name for name in answer.headers if not name.startswith("access-control-")}
        assert own <= exposed | SAFELISTED | HOP, own - exposed


async def test_no_page_may_read_answers_unless_it_is_named(system: System) -> None:
    for data in (
        chat(headers=PAGE),
        request("OPTIONS", headers=PREFLIGHT),
        request("GET", "/livez", headers=PAGE),
        request("GET", "/v1/models", headers=f"{PAGE}X-Big: {BIG}\r\n"),
    ):
        answer = await system.ask(data)
        assert answer.status in (403, 431)
        assert "access-control-allow-origin" not in answer.headers
    assert not system.replicas[0].calls


async def test_a_page_may_not_leave_the_content_type_out(start: Start) -> None:
    system = await start("--cors-origin", ORIGIN)
    bare = chat().replace(b"Content-Type: application/json\r\n", b"")
    assert (await system.ask(bare)).status == 200
    from_page = bare.replace(b"Host:", PAGE.encode() + b"Host:")
    assert (await system.ask(from_page)).status == 415


async def test_the_status_port_answers_no_page_that_nobody_named(start: Start) -> None:
    system = await start("--cors-origin", ORIGIN)
    async with RawClient(system.gateway.status_port) as client:
        assert may_read(await client.ask(request("GET", "/metrics", headers=PAGE)))
        evil = "Origin: https://evil.example\r\n"
        assert (await client.ask(request("GET", "/metrics", headers=evil))).status == 403
