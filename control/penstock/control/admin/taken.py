"""Long answers, for readers that take them: one that takes nothing gives its place to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Final, Generic, TypeVar

from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

Part = TypeVar("Part", str, bytes)
TAKEN_WITHIN: Final = timedelta(minutes=1)


class Taken(StreamingResponse, Generic[Part]):
    """Ends with its reader, or where that takes nothing for so long; and then nothing is read.
    `first`: a part that has been read, so that what goes wrong before is told as an error."""

    def __init__(
        self,
        first: Part,
        parts: AsyncGenerator[Part, None],
        *,
        media_type: str,
        within: timedelta = TAKEN_WITHIN,
    ) -> None:
        super().__init__(
            after(first, parts), media_type=media_type, headers={"cache-control": "no-store"}
        )
        self._parts: AsyncGenerator[Part, None] = parts
        self._within = within.total_seconds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""

        async def patient(message: Message) -> None:
            async with asyncio.timeout(self._within):
                await send(message)

        async with aclosing(self._parts):
            with suppress(TimeoutError):
                await super().__call__(scope, receive, patient)


async def after(first: Part, parts: AsyncIterator[Part]) -> AsyncIterator[Part]:
    """A part that has been read, and those that are behind it."""
    yield first
    async for each in parts:
        yield each
