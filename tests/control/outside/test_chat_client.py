"""A question to the OpenAI API: its answer piece by piece, and all that may come in its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.control.errors import Unauthenticated, Unavailable
from penstock.control.outside.chat_client import streamed
from tests.fakes.openai_server import KEY, MODEL, raw_stream, refuse, usual
from tests.fakes.provider_server import ProviderServer, Scenario

QUESTION = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}
HALF = b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(usual(key=KEY)) as server:
        yield server


async def asked(server: ProviderServer, key: str = KEY) -> list[str]:
    return [piece async for piece in streamed(f"{server.url}/v1", key, None, QUESTION)]


async def test_the_words_come_one_by_one(server: ProviderServer) -> None:
    pieces = await asked(server)
    assert len([each for each in pieces if each]) > 1
    assert server.asked[-1].path == "/v1/chat/completions"


async def test_words_may_hold_whatever_ends_a_line_elsewhere(server: ProviderServer) -> None:
    words = "a\u2028b\x85c"
    event = f'data: {{"choices": [{{"delta": {{"content": "{words}"}}}}]}}\n\n'.encode()
    server.next.append(raw_stream(event, b"data: [DONE]\r\n\r\n"))
    assert await asked(server) == [words]


async def test_without_a_key_it_is_said_how_to_give_one(server: ProviderServer) -> None:
    with pytest.raises(Unauthenticated, match=r"Incorrect API key .*PENSTOCK_API_KEY says it"):
        await asked(server, key="")


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (refuse(429, "too busy"), "answers 429: too busy"),
        (raw_stream(HALF), "broke off without a word"),
        (raw_stream(HALF, cut=True), "chat/completions: "),
        (
            raw_stream(HALF, b'data: {"error": {"message": "the engine died"}}\n\n'),
            "broke off: the engine died",
        ),
        (raw_stream(b'data: {"error": "no"}\n\n'), 'broke off: {"error": "no"}'),
        (raw_stream(b'data: {"choices": [{}]}\n\n'), "broke off: "),
        (raw_stream(b'data: {"choi\n\n'), "broke off: "),
    ],
)
async def test_half_an_answer_is_an_error(
    server: ProviderServer, scenario: Scenario, words: str
) -> None:
    server.next.append(scenario)
    with pytest.raises(Unavailable, match=words):
        await asked(server)


async def test_where_nobody_listens_it_says_where() -> None:
    with pytest.raises(Unavailable, match="/v1/chat/completions: "):
        async for _ in streamed("http://127.0.0.1:1/v1/", "", None, QUESTION):
            pass
