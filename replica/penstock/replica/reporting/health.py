"""Deep health, and the watch for an engine that hangs.

Live and ready are answered by the native server, which knows the state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.replica.calls.answers import events_of
from penstock.replica.endings import EngineHung
from penstock.replica.engine import Engine
from penstock.replica.reporting.progress import Patience, Progress, Reading
from penstock.replica.values import (
    BEFORE_ALL,
    BEHIND_ALL,
    Call,
    EngineError,
    EngineKind,
    Failed,
    Finished,
)

log = logging.getLogger(__name__)

_DEEP_TIMEOUT = 10.0  # seconds
_DEEP_TOKENS = 5
_ASKED_AGAIN = 10.0  # seconds that the verdict of a check behind all calls is told again for


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a deep check found."""

    ok: bool
    detail: str
    latency_us: int


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why nothing came out of a deep check; `busy`: it may be that others were before it."""

    detail: str
    busy: bool = False


class Health:
    """Checks one engine. Deep checks of one kind wait for each other."""

    def __init__(
        self, engine: Engine, served_name: str, *, patience: float = _DEEP_TIMEOUT
    ) -> None:
        """`patience`: seconds that a deep check may take."""
        self._engine = engine
        self._patience = patience
        self._served_name = served_name
        self._turn = asyncio.Lock()
        self._turn_behind = asyncio.Lock()
        self._behind: tuple[float, Verdict] | None = None  # the last one there, and when it ended
        # An engine of another kind brings its own way to see that it does its work.
        self._checks: dict[EngineKind, Callable[[int], Awaitable[_Failure | None]]] = {
            EngineKind.TEXT: self._generate,
            EngineKind.VECTORS: self._pool,
            EngineKind.PROVIDER: self._reach,
        }

    async def deep(self) -> Verdict:
        """Asks the engine for a little of what it is there for, before all that waits: five greedy
        tokens, or the vector of one word; of a provider, whether it takes connections.

        A full engine may let that wait nevertheless; it is well while it works for others.
        """
        async with self._turn:
            return await self._check(BEFORE_ALL)

    async def deep_behind(self) -> Verdict:
        """The same behind all calls, for those who only want to know: one check in ten seconds,
        however many ask."""
        async with self._turn_behind:
            if self._behind is None or time.monotonic() - self._behind[0] >= _ASKED_AGAIN:
                verdict = await self._check(BEHIND_ALL)
                self._behind = time.monotonic(), verdict
            return self._behind[1]

    async def _check(self, priority: int) -> Verdict:
        began, made = time.monotonic(), self._made()
        failure = await self._ask(priority)
        latency_us = int((time.monotonic() - began) * 1e6)
        if failure and failure.busy and self._made() > made:
            detail = "the engine is full, and works for the calls that it has"
            return Verdict(ok=True, detail=detail, latency_us=latency_us)
        return Verdict(not failure, failure.detail if failure else "", latency_us)

    async def watch(self, every: float, patience: Patience) -> None:
        """Looks at the engine each `every` seconds. Raises `EngineHung` when patience is over."""
        first = self._reading(answered=True)
        progress = Progress(first, first)
        while True:
            await asyncio.sleep(every)
            reading = self._reading(answered=await self._answers(every))
            progress = progress.after(reading)
            if fault := progress.fault(reading.at, patience):
                raise EngineHung(fault)

    def _reading(self, *, answered: bool) -> Reading:
        figures = self._engine.load()
        return Reading(time.monotonic(), figures.steps, self._engine.cpu_seconds(), answered)

    async def _answers(self, within: float) -> bool:
        """Whether the engine's own loop answers a question."""
        try:
            async with asyncio.timeout(within):
                await self._engine.probe()
        except TimeoutError:
            return False
        except EngineError as error:
            # `Engine.died` tells of the same with the reason.
            log.warning("probe failed: %s", error)
        return True

    async def _ask(self, priority: int) -> _Failure | None:
        try:
            async with asyncio.timeout(self._patience):
                return await self._checks[self._engine.kind()](priority)
        except TimeoutError:
            return _Failure(f"no answer within {self._patience:g} s", busy=True)

    def _made(self) -> int:
        """What shows that the engine works: it grows with all that it does."""
        figures = self._engine.load()
        return figures.steps if self._engine.kind() is EngineKind.VECTORS else figures.tokens

    async def _reach(self, _: int) -> _Failure | None:
        """Why a provider cannot be reached. Nothing is asked of it: its answers cost money."""
        try:
            await self._engine.reach()
        except EngineError as error:
            return _Failure(str(error))
        return None

    async def _pool(self, priority: int) -> _Failure | None:
        """Why there were no numbers, if there were none."""
        try:
            numbers = await self._engine.pool("Hello", priority=priority)
        except EngineError as error:
            return _Failure(str(error))
        return None if numbers else _Failure("the answer had no numbers")

    async def _generate(self, priority: int) -> _Failure | None:
        """Why there were no tokens, if there were none."""
        body = {
            "model": self._served_name,
            "prompt": "Hello",
            "max_tokens": _DEEP_TOKENS,
            "temperature": 0,
        }
        payload = json.dumps(body).encode()
        name = self._served_name
        call = Call("health", "/v1/completions", payload, name, priority=priority)
        async with contextlib.aclosing(events_of(self._engine.answer, call)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    return _Failure(event.message, busy=event.code == "overloaded")
                if isinstance(event, Finished) and not event.completion_tokens:
                    return _Failure("the answer had no tokens")
        return None
