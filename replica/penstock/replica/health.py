"""Deep health, and the watch for an engine that hangs.

Live and ready are answered by the native server, which knows the state.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass

from penstock.replica.endings import EngineHung
from penstock.replica.engine import Call, Engine, EngineError, Failed, Finished
from penstock.replica.progress import Patience, Progress, Reading

log = logging.getLogger(__name__)

_DEEP_TIMEOUT = 10.0  # seconds
_DEEP_TOKENS = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a deep check found."""

    ok: bool
    detail: str
    latency_us: int


class Health:
    """Checks one engine. Deep checks wait for each other."""

    def __init__(self, engine: Engine, served_name: str) -> None:
        self._engine = engine
        self._served_name = served_name
        self._turn = asyncio.Lock()

    async def deep(self) -> Verdict:
        """Asks the engine for five greedy tokens."""
        async with self._turn:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_DEEP_TIMEOUT):
                    detail = await self._generate()
            except TimeoutError:
                detail = f"no answer within {_DEEP_TIMEOUT:g} s"
            latency_us = int((time.monotonic() - began) * 1e6)
            return Verdict(not detail, detail, latency_us)

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
        return Reading(time.monotonic(), figures.steps, figures.cpu_seconds, answered)

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

    async def _generate(self) -> str:
        """Empty, or why there were no tokens."""
        body = {
            "model": self._served_name,
            "prompt": "Hello",
            "max_tokens": _DEEP_TOKENS,
            "temperature": 0,
        }
        payload = json.dumps(body).encode()
        call = Call("health", "/v1/completions", payload, self._served_name)
        detail = "the answer had no end"
        async for event in self._engine.answer(call):
            if isinstance(event, Failed):
                detail = event.message
            elif isinstance(event, Finished):
                detail = "" if event.completion_tokens > 0 else "the answer had no tokens"
        return detail


__all__ = ["Health", "Verdict"]
