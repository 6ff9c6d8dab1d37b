"""Thousands of short requests over kept connections, and what each of them cost by the rules."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass

PROMPT = 4  # the simulated engine counts words: the role, and three
BODY = {"model": "sim", "messages": [{"role": "user", "content": "one two three"}]}


@dataclass
class Bill:
    """What requests cost, as their clients saw it."""

    settled: int = 0  # requests that went to a replica, told once each
    prompt: int = 0
    completion: int = 0

    def add(self, completion: int) -> None:
        """One more."""
        self.settled += 1
        self.prompt += PROMPT
        self.completion += completion


class Line:
    """A connection to the gateway, one request after the other."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key
        self.length = 0  # of the answer's body, where that is known
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, **fields: object) -> asyncio.StreamReader:
        """Sends a request, and reads the head of a 200."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = json.dumps({**BODY, **fields})
        writer.write(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 200"), head
        length = re.search(r"(?i)content-length: (\d+)", head)
        self.length = int(length[1]) if length else 0
        return reader

    def leave(self) -> None:
        """Hangs up, whatever is under way."""
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._streams = None


async def finish(line: Line, bill: Bill, tokens: int) -> None:
    """A whole answer; what it says of its cost is what is billed."""
    reader = await line.send(max_tokens=tokens)
    usage = json.loads(await reader.readexactly(line.length))["usage"]
    assert usage["prompt_tokens"] == PROMPT
    bill.add(usage["completion_tokens"])


async def one_token(line: Line) -> asyncio.StreamReader:
    """A stream whose first token has come; the next one is not made for a long time."""
    slow = {"tokens_per_second": 0.01, "answer_tokens": 1000}
    reader = await line.send(stream=True, simulate=slow)
    while b'"content":' not in (event := await reader.readuntil(b"\n\n")) or b':""' in event:
        pass
    return reader


async def leave_after_one(line: Line, bill: Bill) -> None:
    """A client that leaves when one token has come, which is all that was made."""
    await one_token(line)
    line.leave()
    bill.add(1)


async def leave_midway(line: Line, bill: Bill) -> None:
    """A client that leaves while tokens come: only the replica knows how many it had made."""
    fast = {"tokens_per_second": 500, "answer_tokens": 1000}
    reader = await line.send(stream=True, simulate=fast)
    for _ in range(5):
        await reader.readuntil(b"\n\n")
    line.leave()
    bill.add(0)
