"""Sees to it that a replica holds the adapters that it is to hold, beside the calls.

What is missing is loaded one after the other, pinned ones first; what is no longer registered
leaves as soon as nobody uses it. What had to leave for a call returns only to a free slot.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from penstock.adapters.slots import Claim
from penstock.replica.adapters.table import AdapterTable
from penstock.replica.adapters.values import AdapterUnavailable, Code
from penstock.replica.values import AdapterSource, EngineError

log = logging.getLogger(__name__)


class Keeper:
    """Keeps what it is told to in `table`."""

    def __init__(self, table: AdapterTable, named: Iterable[AdapterSource] = ()) -> None:
        """`named`: what the replica begins with."""
        self._table = table
        self._wishes = {adapter.name: adapter for adapter in named}
        self._dropped: set[str] = set()
        self._fresh: set[str] = set()  # not held since they are wished for: before guests
        self._look = asyncio.Event()
        self._turn = asyncio.Lock()  # to have the table load or unload something
        table.wish(self._wishes)
        table.watch(self._look.set)

    def keep(self, adapters: Iterable[AdapterSource], dropped: Iterable[str] = ()) -> None:
        """What is to be held from now on, and what is not registered any more."""
        before, self._wishes = self._wishes, {adapter.name: adapter for adapter in adapters}
        new = {name for name, wish in self._wishes.items() if before.get(name) != wish}
        self._fresh = (self._fresh & self._wishes.keys()) | new
        self._dropped = (self._dropped | set(dropped)) - self._wishes.keys()
        if self._wishes != before:
            self._table.failures.forgive(self._wishes)
        # What is wished for no longer may be so because it failed: that stays told.
        for name in self._dropped:
            self._table.failures.clear(name)
        self._table.wish(self._wishes)
        self._look.set()

    def forget(self, name: str) -> None:
        """It is unloaded by hand: it is not brought back by itself."""
        self._wishes = {wish: self._wishes[wish] for wish in self._wishes if wish != name}
        self._fresh.discard(name)
        self._table.wish(self._wishes)

    @contextlib.asynccontextmanager
    async def at_rest(self) -> AsyncIterator[None]:
        """Brings and takes nothing meanwhile; begins once what is under way is done."""
        async with self._turn:
            yield
        self._look.set()

    async def run(self) -> None:
        """Works for as long as it runs."""
        while True:
            self._look.clear()
            async with self._turn:
                pause = await self._round()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._look.wait()

    async def _round(self) -> float | None:
        """One look at everything; seconds until the next, or none: when something changes."""
        wanted_idle = {name for name in sorted(self._dropped) if not await self._drop(name)}
        wanted_idle = {name for name in wanted_idle if not self._table.is_loading(name)}
        pauses = []
        wishes = self._wishes
        for adapter in sorted(wishes.values(), key=lambda adapter: not adapter.pinned):
            if wishes is not self._wishes:
                return 0.0
            if pause := self._table.failures.pause(adapter):
                pauses.append(pause)
                continue
            claim = self._claim(adapter)
            if not await self._see_to(adapter, claim) and claim is not Claim.SPARE:
                wanted_idle |= self._table.in_use()
        if wanted_idle:
            self._table.weights.tell_when_idle(wanted_idle, self._look.set)
        return min(pauses, default=None)

    async def _drop(self, name: str) -> bool:
        """Whether it is gone."""
        try:
            gone = await self._table.unload(name)
        except EngineError as error:
            log.warning("adapter not unloaded: %s", error, extra={"adapter": name})
            return True
        if gone:
            self._dropped.discard(name)
            self._table.failures.clear(name)
        return gone

    async def _see_to(self, adapter: AdapterSource, claim: Claim) -> bool:
        """Whether the adapter is there, or need not be waited for."""
        try:
            # A pin is the wish's, and goes with it.
            await self._table.load(replace(adapter, pinned=False), claim)
        except AdapterUnavailable as error:
            if error.code is Code.MISMATCH:
                self._table.note(adapter, error)
            return error.code is not Code.SLOTS_FULL
        self._fresh.discard(adapter.name)
        return True

    def _claim(self, adapter: AdapterSource) -> Claim:
        if adapter.pinned:
            return Claim.ASKED
        return Claim.PRELOADED if adapter.name in self._fresh else Claim.SPARE
