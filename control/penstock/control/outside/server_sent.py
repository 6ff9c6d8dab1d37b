"""Server-sent events, as the head sends them: each with its fields, as they come."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

SSE: Final = "text/event-stream"
SILENCE: Final = timedelta(seconds=30)  # the head says something every ten seconds


async def server_sent(parts: AsyncIterator[bytes]) -> AsyncIterator[dict[str, str]]:
    """The fields of each."""
    decoder, text = codecs.getincrementaldecoder("utf-8")(), ""
    async for part in parts:
        *blocks, text = (text + decoder.decode(part)).split("\n\n")
        for block in blocks:
            yield dict(line.split(": ", 1) for line in block.splitlines())
