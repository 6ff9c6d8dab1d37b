"""A replica's sleep, and its wake, which is never trusted.

An engine that was asleep may come back with other weights than it had, without an adapter, or with
what it had cached of others. So what it answers to a fixed prompt is taken down before the sleep,
of the model and of each adapter; after it the adapters are loaded anew, and the same has to come
out before any call is taken. Where it does not the replica ends: its agent starts another.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from penstock.replica.adapters.keeper import Keeper
from penstock.replica.calls.answers import events_of
from penstock.replica.endings import WokeWrong
from penstock.replica.engine import Engine
from penstock.replica.reporting import exposition
from penstock.replica.reporting.life import Happening, State
from penstock.replica.reporting.presence import Presence
from penstock.replica.values import (
    BEFORE_ALL,
    AdapterSource,
    Call,
    Chunk,
    EngineError,
    EngineKind,
    Failed,
    Finished,
    SleepSettings,
)

log = logging.getLogger(__name__)

_PROMPT: Final = tuple(range(11, 43))  # token ids that any vocabulary has
_TOKENS: Final = 16


class Sleeper:
    """Puts one engine to sleep and wakes it."""

    def __init__(
        self,
        engine: Engine,
        presence: Presence,
        keeper: Keeper,
        served_name: str,
        settings: SleepSettings,
        drained: Callable[[float], Awaitable[int]],
        memory: Callable[[], exposition.Memory] = exposition.memory,
    ) -> None:
        """`drained`: waits so many seconds for running calls, and returns how many are left;
        `memory`: what is held, which takes a while to find out."""
        self._engine = engine
        self._presence = presence
        self._keeper = keeper
        self._served_name = served_name
        self._settings = settings
        self._drained = drained
        self._memory = memory
        self._turn = asyncio.Lock()
        self._rest = contextlib.AsyncExitStack()  # holds what is not to work while it sleeps
        self._before: dict[AdapterSource | None, str] = {}
        self._wakes = 0
        self._held_at_first = 0  # bytes, after the first wake
        self._growth_percent = 0

    def reluctance(self) -> str:
        """Why it is not put to sleep, or not again; empty: it may be."""
        settings = self._settings
        if not settings.level:
            return "its deployment has sleep off"
        if why := self._engine.sleepless():
            return why
        if self._engine.kind() is not EngineKind.TEXT:
            return "its model generates no tokens that a wake could be checked by"
        if self._wakes >= settings.cycles:
            return f"it was woken {self._wakes} times (sleep_cycles): another is to take its place"
        if self._growth_percent > settings.growth_percent:
            return f"its memory has grown by {self._growth_percent} % (sleep_growth_percent)"
        return ""

    async def sleep(self, patience: float) -> None:
        """Takes no more calls, waits so many seconds for those that run, and sleeps. Raises
        `EngineError` where it does not: then it is to be ended."""
        async with self._turn:
            if self._presence.state is State.ASLEEP:
                return
            if why := self.reluctance():
                raise EngineError(why)
            if self._presence.hear(Happening.SLEEP) is not State.ASLEEP:
                raise EngineError(f"it is {self._presence.state.value}")
            try:
                await self._fall_asleep(patience)
            except BaseException:
                self._presence.hear(Happening.DRAIN)
                raise
            log.info("asleep", extra={"level": self._settings.level})

    async def wake(self) -> int:
        """Wakes up; returns how often it has by now. Raises `WokeWrong`."""
        async with self._turn:
            if self._presence.state is State.ASLEEP:
                try:
                    await self._wake_up()
                except Exception as error:  # whatever it is, nothing of it is to be trusted
                    raise WokeWrong(f"woke wrongly: {error}") from error
                self._wakes += 1
                await self._weigh()
                await self._rest.aclose()
                self._presence.hear(Happening.WAKE)
                log.info("awake", extra={"wakes": self._wakes})
            if self._presence.state is not State.READY:
                raise EngineError(f"it is {self._presence.state.value}, it does not wake")
            return self._wakes

    async def _fall_asleep(self, patience: float) -> None:
        if left := await self._drained(patience):
            raise EngineError(f"{left} calls still run after {patience:g} s")
        await self._rest.enter_async_context(self._keeper.at_rest())
        held = self._engine.adapters.held()
        self._before = {each: await self._digest(each) for each in (None, *held)}
        await self._engine.sleep(self._settings.level)

    async def _wake_up(self) -> None:
        await self._engine.wake()
        table = self._engine.adapters
        for adapter in filter(None, self._before):
            if not await table.unload(adapter.name):
                raise EngineError(f"the adapter {adapter.name} cannot be taken out")
            await table.load(adapter)
        for which, digest in self._before.items():
            if await self._digest(which) != digest:
                what = f"the adapter {which.name}" if which else "the model"
                raise EngineError(f"{what} answers otherwise than before the sleep")

    async def _digest(self, adapter: AdapterSource | None) -> str:
        """Of the tokens that come out for the fixed prompt; of what is cached nothing is used."""
        body = {
            "model": self._served_name,
            "prompt": _PROMPT,
            "max_tokens": _TOKENS,
            "temperature": 0,
            "ignore_eos": True,
        }
        call = Call(
            "sleep-probe",
            "/v1/completions",
            json.dumps(body).encode(),
            self._served_name,
            adapter=adapter.name if adapter else "",
            adapter_digest=adapter.digest if adapter else "",
            priority=BEFORE_ALL,
            tenant_salt=uuid.uuid4().hex,
            token_groups=True,
        )
        tokens: list[int] = []
        async with contextlib.aclosing(events_of(self._engine.answer, call)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise EngineError(f"its probe failed: {event.message}")
                if isinstance(event, Chunk):
                    tokens += [token for group in event.groups for token in group.token_ids]
                if isinstance(event, Finished):
                    break
        if not tokens:
            raise EngineError("its probe gave no tokens")
        return hashlib.sha256(json.dumps(tokens).encode()).hexdigest()

    async def _weigh(self) -> None:
        """How much more memory it holds than after its first wake."""
        held = await asyncio.to_thread(self._memory)
        whole = held.replica + held.children
        self._held_at_first = self._held_at_first or whole
        self._growth_percent = round(100 * (whole / self._held_at_first - 1))
