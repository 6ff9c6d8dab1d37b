"""What one tenant sees of its own answers: the first token of short chats, and how long running
streams are silent. Threads of plain HTTP, so that no answer waits for another one's reading.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.evals.client import CHAT_PATH
from penstock.evals.errors import EvalError
from penstock.evals.scoring import quantile

STREAMS = 3
STREAM_TOKENS = 2000
CHAT_TOKENS = 8
PAUSE_SECONDS = 0.1  # between two chats
DONE = b"data: [DONE]"


@dataclass(slots=True)
class Seen:
    """Milliseconds: to each chat's first event, and every stream's longest silence between two."""

    first_tokens: list[float] = field(default_factory=list)
    silences: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """Of the first tokens."""
        return quantile(sorted(self.first_tokens), 0.5)

    @property
    def p99(self) -> float:
        """Of the first tokens."""
        return quantile(sorted(self.first_tokens), 0.99)

    @property
    def longest_silence(self) -> float:
        """Of any stream."""
        return max(self.silences)


class Neighbour:
    """A tenant's clients at a gateway's port."""

    def __init__(self, port: int, model: str, key: str) -> None:
        self._port = port
        self._model = model
        self._headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}

    def look(self, seconds: float) -> Seen:
        """Asks for so long. Raises `EvalError` where nothing at all was answered."""
        seen = Seen()
        until = time.monotonic() + seconds
        works: list[Callable[[float, Seen], None]] = [self._chat, *[self._stream] * STREAMS]
        threads = [threading.Thread(target=self._kept, args=(one, until, seen)) for one in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not seen.first_tokens or not seen.silences:
            raise EvalError(f"the gateway answered nothing: {seen.failures[:3]}")
        return seen

    def _kept(self, work: Callable[[float, Seen], None], until: float, seen: Seen) -> None:
        while time.monotonic() < until:
            try:
                work(until, seen)
            except (OSError, http.client.HTTPException, EvalError) as error:
                seen.failures.append(str(error))
                time.sleep(PAUSE_SECONDS)

    def _chat(self, _: float, seen: Seen) -> None:
        began = time.perf_counter()
        reply = self._ask("What is a gateway?", CHAT_TOKENS)
        seen.first_tokens.append((time.perf_counter() - began) * 1000)
        if DONE not in reply.read():
            raise EvalError("a chat was cut off")
        time.sleep(PAUSE_SECONDS)

    def _stream(self, until: float, seen: Seen) -> None:
        reply = self._ask("Count from 1.", STREAM_TOKENS)
        last, longest, end = time.perf_counter(), 0.0, b""
        while time.monotonic() < until and (piece := reply.read1(1 << 16)):
            now = time.perf_counter()
            longest, last, end = max(longest, now - last), now, piece
        seen.silences.append(longest * 1000)
        reply.close()
        if time.monotonic() < until and DONE not in end:
            raise EvalError("a stream was cut off")

    def _ask(self, question: str, tokens: int) -> http.client.HTTPResponse:
        """The answer, whose first event has come."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        body = {
            "model": self._model,
            "stream": True,
            "ignore_eos": True,
            "skip_special_tokens": False,  # each token is an event
            "max_tokens": tokens,
            "messages": [{"role": "user", "content": question}],
        }
        connection.request("POST", CHAT_PATH, json.dumps(body), self._headers)
        reply = connection.getresponse()
        if reply.status != 200:
            raise EvalError(f"the gateway answered {reply.status}: {reply.read()[:300]!r}")
        reply.peek()
        return reply
