"""Many streams at once through the openai SDK, and how each of them ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

import openai

from tests.e2e.system import System


@dataclass
class Stream:
    """What a client saw of one stream so far."""

    tokens: int = 0
    finish_reason: str | None = None
    error: Exception | None = None
    ended: bool = False

    @property
    def complete(self) -> bool:
        """It ended as a whole answer does."""
        return self.error is None and self.finish_reason in ("stop", "length")


async def read(client: openai.AsyncOpenAI, model: str, stream: Stream, **options: object) -> None:
    """Reads one streamed answer into `stream`, errors included."""
    try:
        answer = await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "Tell me a long story, please."}],
            stream=True,
            extra_body=options,
        )
        async for chunk in answer:
            if chunk.choices:
                stream.tokens += bool(chunk.choices[0].delta.content)
                stream.finish_reason = chunk.choices[0].finish_reason or stream.finish_reason
    except openai.APIError as error:
        stream.error = error
    finally:
        stream.ended = True


async def until(condition: object, *, within: float, what: str) -> None:
    """Waits until `condition()` is true."""
    assert callable(condition)
    async with asyncio.timeout(within) as limit:
        while not condition():
            await asyncio.sleep(0.02)
    assert not limit.expired(), what


def sdk_at(base_url: str, key: str = "none") -> openai.AsyncOpenAI:
    """An SDK client that shows every failure: no retries of its own.

    All is plain HTTP here: each client would else read whom it may trust, for 45 ms.
    """
    plain = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(
        base_url=base_url, api_key=key, max_retries=0, timeout=60, http_client=plain
    )


def client_of(system: System) -> openai.AsyncOpenAI:
    """One of a system that asks for no key."""
    return sdk_at(system.base_url)


@asynccontextmanager
async def twenty_streams(system: System) -> AsyncIterator[list[Stream]]:
    """Twenty streams under way, every one past its first tokens; they end before this does."""
    streams = [Stream() for _ in range(20)]
    async with client_of(system) as client, asyncio.TaskGroup() as group:
        for stream in streams:
            group.create_task(read(client, "sim", stream))
        await until(lambda: all(s.tokens > 2 for s in streams), within=20, what="first tokens")
        assert not any(s.ended for s in streams)
        yield streams


async def ask(system: System, kept: openai.AsyncOpenAI | None = None) -> str:
    """A short answer, over a new connection or that of a client; raises when it fails."""
    async with nullcontext(kept) if kept else client_of(system) as client:
        reply = await client.chat.completions.create(
            model="sim",
            messages=[{"role": "user", "content": "hello"}],
            max_tokens=3,
            extra_body={"simulate": {"tokens_per_second": 0}},
        )
    assert reply.choices[0].message.content
    return reply.choices[0].message.content
