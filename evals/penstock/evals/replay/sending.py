"""Sends requests when they are due, whatever became of those before: an open loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from penstock.evals.closed_loop import run_clients
from penstock.evals.comparison.recording import Recorded
from penstock.evals.endpoint import Endpoint, Posted, post
from penstock.evals.replay.replies import AnyReply
from penstock.evals.replay.summary import Outcome, outcome

SESSION_HEADER = "x-penstock-session"


@dataclass(frozen=True, slots=True)
class Replay:
    """How a recording is sent."""

    target: Endpoint  # its model, if it has one, takes the place of the recorded ones
    speed: float | None = 1.0  # how many times as fast as it came; none: as fast as possible
    most_at_once: int = 1024
    timeout_s: float = 600.0

    def due(self, at: float, first: float) -> float:
        """Seconds from the beginning until a request is to be sent."""
        return 0.0 if self.speed is None else (at - first) / self.speed

    def body(self, request: Recorded) -> dict[str, Any]:
        """What is sent."""
        model = {"model": self.target.model} if self.target.model else {}
        return {**request.body, **model}


def send(requests: Iterable[Recorded], how: Replay) -> list[Outcome]:
    """Sends all, the first to arrive first, and gives what became of each, in that order."""
    found: dict[int, Outcome] = {}

    async def client(http: httpx.AsyncClient, number: int) -> None:
        await _Schedule(http, how, found).keep(requests)

    run_clients(how.target.url, 1, client)
    return [found[number] for number in range(len(found))]


@dataclass(slots=True)
class _Schedule:
    http: httpx.AsyncClient
    how: Replay
    found: dict[int, Outcome]
    places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.how.most_at_once)

    async def keep(self, requests: Iterable[Recorded]) -> None:
        began, first = time.perf_counter(), None
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(requests):
                first = request.at if first is None else first
                due = began + self.how.due(request.at, first)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                full = self.places.locked()
                await self.places.acquire()
                group.create_task(self._send(number, request, due, full))

    async def _send(self, number: int, request: Recorded, due: float, full: bool) -> None:
        try:
            late = max(0.0, time.perf_counter() - due)
            done: Posted[AnyReply] = await post(
                self.http,
                self.how.target,
                request.path,
                self.how.body(request),
                AnyReply,
                timeout_s=self.how.timeout_s,
                headers={SESSION_HEADER: request.session} if request.session else None,
            )
            late_ms = None if self.how.speed is None else late * 1000
            self.found[number] = outcome(request, done, late_ms, held_back=full)
        finally:
            self.places.release()
