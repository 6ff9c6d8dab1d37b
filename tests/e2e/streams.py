"""Many streams at once through the openai SDK, and how each of them ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import openai


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

    @property
    def silently_truncated(self) -> bool:
        """It ended without an error and without a finish reason: what must never happen."""
        return self.ended and self.error is None and self.finish_reason is None


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
