"""A steady flow of short streams and unary requests at each gateway, and how each request ended."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import httpx

STREAMING = 3  # clients of each gateway that ask for one stream after the other
ASKING = 2  # and for one unary answer after the other
WHOLE = "whole"
# An answer that looks like a whole one and is none: what must never be.
CUT = "cut short without a word"
BROKEN = "broken connection"
REFUSED = "refused connection"
HUNG = "hung"
PATIENCE = 60.0  # seconds that a client waits for the next byte


@dataclass(frozen=True)
class Ended:
    """One request: at which gateway, when, and how it ended as its client saw it."""

    port: int
    streamed: bool
    began: float
    end: float
    how: str

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.began


@dataclass
class Flow:
    """What the clients have seen so far."""

    ended: list[Ended] = field(default_factory=list)
    begun: int = 0  # streams whose answer has begun and not ended
    over: bool = False

    def whole_since(self, moment: float, port: int) -> int:
        """How many that began since then ended well there."""
        return sum(e.port == port and e.began > moment and e.how == WHOLE for e in self.ended)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """One is under way until the block ends."""
        self.begun += 1
        try:
            yield
        finally:
            self.begun -= 1


@asynccontextmanager
async def flowing(ports: Sequence[int], model: str, **body: object) -> AsyncIterator[Flow]:
    """Clients ask all the while; at the end each hears its last answer out."""
    flow = Flow()
    async with asyncio.TaskGroup() as group:
        for port in ports:
            for number in range(STREAMING + ASKING):
                streamed = number < STREAMING
                content = {"model": model, **body, "stream": streamed}
                content["messages"] = [{"role": "user", "content": f"client {number} asks"}]
                group.create_task(_keep_asking(flow, port, content, keeps=number % 2 == 0))
        yield flow
        flow.over = True


async def _keep_asking(flow: Flow, port: int, body: dict[str, object], *, keeps: bool) -> None:
    """One request after the other, over one connection or a new one for each."""
    while not flow.over:
        async with httpx.AsyncClient(timeout=PATIENCE, verify=False) as client:
            while not flow.over:
                began = time.monotonic()
                url = f"http://127.0.0.1:{port}/v1/chat/completions"
                how = await _ask(flow, client, url, body)
                end = time.monotonic()
                flow.ended.append(Ended(port, bool(body["stream"]), began, end, how))
                await asyncio.sleep(0.05)
                if not keeps:
                    break


async def _ask(flow: Flow, client: httpx.AsyncClient, url: str, body: dict[str, object]) -> str:
    try:
        async with client.stream("POST", url, json=body) as reply:
            if reply.status_code != 200 or not body["stream"]:
                return _verdict(reply, await reply.aread())
            with flow.stream():
                return await _last_word(reply)
    except httpx.TimeoutException:
        return HUNG
    except httpx.ConnectError:
        return REFUSED
    except httpx.TransportError:
        return BROKEN


def _verdict(reply: httpx.Response, content: bytes) -> str:
    answer = json.loads(content)
    if reply.status_code == 200:
        return WHOLE if answer["choices"][0]["finish_reason"] else CUT
    again = reply.headers.get("x-should-retry", "unsaid")
    return f"{reply.status_code} {answer['error']['code']}, retry {again}"


async def _last_word(reply: httpx.Response) -> str:
    finished = False
    async for line in reply.aiter_lines():
        if line == "data: [DONE]":
            return WHOLE if finished else CUT
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            if "error" in event:
                return f"{event['error']['code']} in the stream"
            finished |= any(choice["finish_reason"] for choice in event["choices"])
    return CUT
