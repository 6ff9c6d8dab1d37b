"""Calls to a provider's engine in the test's own process."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from penstock.replica.calls.answers import EventSink, events_of
from penstock.replica.providers.make import make_provider_engine
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.settings import parse_settings
from penstock.replica.values import Call, Chunk, Event, Failed, Finished, Usage

CHAT = "/v1/chat/completions"


@contextlib.asynccontextmanager
async def provider_engine(
    engine: str, model: str, *settings: str, flags: tuple[str, ...] = ()
) -> AsyncIterator[ProviderEngine]:
    """An engine as a replica makes it from its command line, started."""
    words = [word for setting in settings for word in ("--engine-arg", setting)]
    needed = ["--replica-id", "r", "--deployment", "d", "--engine", engine, "--model", model]
    made = make_provider_engine(parse_settings([*needed, *words, *flags]))
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


def chat(text: str = "Hello there", **fields: Any) -> Call:
    """A chat completion; `fields` go into its body."""
    return call(CHAT, messages=[{"role": "user", "content": text}], **fields)


def call(path: str, **fields: Any) -> Call:
    """A call with this body."""
    body = json.dumps({"model": "our-name", **fields}).encode()
    return Call("req_1", path, body, "our-name")


async def asked(engine: ProviderEngine, one: Call) -> list[Event]:
    """All events of the call."""
    return [event async for event in events_of(engine.answer, one)]


class CostSink(EventSink):
    """A sink whose reader asks what a call has cost."""

    def __init__(self) -> None:
        super().__init__()
        self._usage: Callable[[], Usage | None] = Usage

    def costs(self, usage: Callable[[], Usage | None]) -> None:
        """See `Sink`."""
        self._usage = usage

    def spent(self) -> Usage:
        """What it has cost so far."""
        return self._usage() or Usage()


async def spent(engine: ProviderEngine, one: Call) -> Usage:
    """What a short call has cost, however it ended."""
    sink = CostSink()
    await engine.answer(one, sink)
    return sink.spent()


async def failure(engine: ProviderEngine, one: Call) -> Failed:
    """How the call failed, before anything of an answer came."""
    events = await asked(engine, one)
    (failed,) = events
    assert isinstance(failed, Failed), events
    return failed


def body_of(events: list[Event]) -> bytes:
    """The bytes of an answer."""
    return b"".join(event.body for event in events if isinstance(event, Chunk))


def end_of(events: list[Event]) -> Finished:
    """The end of an answer that is complete."""
    assert isinstance(events[-1], Finished), events[-1]
    return events[-1]


def objects_of(events: list[Event]) -> list[dict[str, Any]]:
    """The JSON objects of a stream that ends with [DONE]."""
    *blocks, done, rest = body_of(events).decode().split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


__all__ = [
    "CHAT",
    "CostSink",
    "asked",
    "body_of",
    "call",
    "chat",
    "end_of",
    "failure",
    "objects_of",
    "provider_engine",
    "spent",
]
