"""Asking an engine and reading its answer, for the tests that have a real one."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from penstock.replica.calls.answers import events_of
from penstock.replica.engine import Engine
from penstock.replica.values import Call, Chunk, Failed, Finished, Head, TokenGroup

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
RESPONSES: Final = "/v1/responses"
MESSAGES: Final = "/v1/messages"
SERVED: Final = "penstock-mini"
# Of a file whose tests all ask the engine that runs for the whole session.
ON_THE_SHARED_ENGINE: Final = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_ids = itertools.count()


@dataclass
class Answer:
    """All events of one call, and what they say together."""

    head: Head | None = None
    body: bytes = b""
    events: int = 0
    groups: list[TokenGroup] = field(default_factory=list)
    tokens: int = 0
    end: Finished | Failed | None = None

    @property
    def finished(self) -> Finished:
        assert isinstance(self.end, Finished), self.end
        return self.end

    @property
    def failed(self) -> Failed:
        assert isinstance(self.end, Failed), self.end
        return self.end

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sse(self) -> list[Any]:
        """The objects of a stream; its [DONE] is checked and left out."""
        *events, done, rest = self.body.decode().split("\n\n")
        assert (done, rest) == ("data: [DONE]", "")
        return [json.loads(event.removeprefix("data: ")) for event in events]

    def text(self, choice: int = 0) -> str:
        """The words of one choice, streamed or not, chat or completion."""
        if self.head is not None and self.head.content_type == "application/json":
            return _words(self.json["choices"][choice], "message")
        parts = [c for event in self.sse for c in event["choices"] if c["index"] == choice]
        return "".join(_words(part, "delta") for part in parts)


def _words(choice: Any, place: str) -> str:
    words: str | None = choice[place].get("content") if place in choice else choice["text"]
    return words or ""


def typed_events(answer: Answer) -> tuple[list[str], list[Any]]:
    """Names and objects of a stream whose events have names."""
    *events, rest = answer.body.decode().split("\n\n")
    assert rest == ""
    pairs = [event.split("\ndata: ", 1) for event in events]
    names = [name.removeprefix("event: ") for name, _ in pairs]
    objects = [json.loads(data) for _, data in pairs]
    assert names == [one["type"] for one in objects]
    return names, objects


def chat(question: str = "What is a gateway?", **fields: Any) -> bytes:
    """A greedy chat request."""
    messages = [{"role": "user", "content": question}]
    return body(messages=messages, **fields)


def long_request(path: str, *, stream: bool) -> bytes:
    """A request to any endpoint that generates, for thousands of tokens."""
    question = {"role": "user", "content": "Count from 1."}
    own: dict[str, Any] = {
        CHAT: {"messages": [question], "max_tokens": 3000, "ignore_eos": True},
        COMPLETIONS: {"prompt": "Count", "max_tokens": 3000, "ignore_eos": True},
        RESPONSES: {"input": "Count", "max_output_tokens": 3000, "ignore_eos": True},
        # It has no way to go on after an end, but for one that no token makes.
        MESSAGES: {"messages": [question], "max_tokens": 3000, "output_config": _ENDLESS},
    }[path]
    return json.dumps(own | {"stream": stream, "temperature": 0}).encode()


_ENDLESS: Final = {
    "format": {
        "type": "json_schema",
        "schema": {"type": "array", "items": {"type": "integer"}, "minItems": 2000},
    }
}


def body(**fields: Any) -> bytes:
    """A greedy request of 24 tokens, unless told otherwise."""
    return json.dumps({"model": "any", "temperature": 0, "max_tokens": 24} | fields).encode()


def call(content: bytes, path: str = CHAT, model: str = SERVED, **more: Any) -> Call:
    """A call with an id of its own."""
    return Call(f"req_{next(_ids)}", path, content, model, **more)


async def ask(
    engine: Engine, content: bytes, path: str = CHAT, model: str = SERVED, **more: Any
) -> Answer:
    """Asks and listens to the end."""
    answer = Answer()
    async for event in events_of(engine.answer, call(content, path, model, **more)):
        match event:
            case Head():
                answer.head = event
            case Chunk():
                answer.body += event.body
                answer.events += event.events
                answer.groups += event.groups
                answer.tokens += event.tokens
            case Finished() | Failed():
                assert answer.end is None
                answer.end = event
    return answer


async def until(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Waits for a condition, and says what it waited for in vain."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None
