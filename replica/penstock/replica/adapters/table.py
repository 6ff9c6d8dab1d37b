"""The adapters of a replica: which are in the engine, which come, which leave for them.

One table for each engine. A load belongs to nobody: all that ask for its adapter wait for it, and
none of them ends it by leaving. Bytes are fetched and looked at side by side; the engine itself is
changed by one at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from penstock.adapters.slots import Claim, Occupant, Standing, who_closes, who_goes
from penstock.replica.adapters.failures import Failure, Failures
from penstock.replica.adapters.values import (
    AdapterUnavailable,
    Code,
    Prepared,
    Weights,
    no_room,
    not_in_time,
)
from penstock.replica.owned_tasks import OwnedTasks
from penstock.replica.values import AdapterSource, CannotLoad, EngineError

log = logging.getLogger(__name__)

_LOOK_FOR_ROOM_S: Final = 0.01
# That a load waits for room by itself before one that is in use is closed to new calls.
_WAIT_BEFORE_CLOSING_S: Final = 1.0


@dataclass(slots=True)
class _Load:
    """A load that is under way."""

    adapter: AdapterSource
    claim: Claim
    room_until: float  # by the clock: how long it may wait for room
    held_up: asyncio.Future[None]  # done once it found no room, and waits for some
    began: float  # monotonic seconds
    task: asyncio.Task[None] | None = None


class AdapterTable:
    """What the engine behind `weights` holds. Use it from one loop."""

    def __init__(
        self,
        weights: Weights,
        load_timeout: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`load_timeout`: seconds that somebody waits for a load, and that its bytes may take."""
        self.weights: Final = weights
        self.failures: Final = Failures(clock)
        self.slots = 0  # adapters that the engine holds at once
        self.max_rank = 0  # of an adapter; 0: any
        self._timeout = load_timeout
        self._held: dict[str, AdapterSource] = {}
        self._loads: dict[str, _Load] = {}
        self._wishes: dict[str, AdapterSource] = {}
        self._clock = clock
        self._queue = asyncio.Lock()  # of those that are to be put into the engine
        self._turn = asyncio.Lock()  # to change the engine
        self._closed = ""  # what is held takes no new calls, so that it can leave
        self._tasks = OwnedTasks()
        self._watchers: list[Callable[[], None]] = []
        self._opened = False

    def open(self, slots: int, max_rank: int = 0) -> None:
        """The engine is up, and has so many slots."""
        self.slots, self.max_rank, self._opened = slots, max_rank, True

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called whenever the engine holds others, or one could not be loaded."""
        self._watchers.append(changed)

    def held(self) -> tuple[AdapterSource, ...]:
        """What can be answered with now, with digests."""
        return tuple(self._held.values())

    def find(self, name: str) -> AdapterSource | None:
        """The adapter, if it is held."""
        return self._held.get(name)

    def is_open(self, name: str) -> bool:
        """Whether a call may begin with it now."""
        return name in self._held and name != self._closed

    def failed(self) -> tuple[Failure, ...]:
        """What could not be loaded the last time."""
        return self.failures.all()

    def wish(self, adapters: dict[str, AdapterSource]) -> None:
        """What is to be held, by name: it stands above guests."""
        self._wishes = adapters
        for name, held in self._held.items():
            pinned = name in adapters and adapters[name].pinned
            self._held[name] = replace(held, pinned=pinned)
            if pinned and name == self._closed:
                self._reopen()
        self._changed()

    async def load(
        self, adapter: AdapterSource, claim: Claim = Claim.ASKED, wait: float = 0.0
    ) -> None:
        """Returns when the adapter can be answered with. `wait`: seconds that it may wait for room
        where all slots are pinned or in use. Raises `AdapterUnavailable`."""
        if not self._opened:
            raise AdapterUnavailable(Code.LOAD_FAILED, "The engine is not started, or stops.")
        if held := self._held.get(adapter.name):
            self._take(adapter, held)
            if adapter.name != self._closed or claim is not Claim.ASKED:
                return
            adapter = held
        load = self._loads.get(adapter.name)
        if load is None:
            self.failures.raise_if_recent(adapter)
            if not wait or not self._may_have_room():
                self._see_that_possible(adapter, claim)
            load = self._begin(adapter, claim)
        self._see_that_same(adapter, load.adapter)
        load.claim = max(load.claim, claim)
        load.room_until = max(load.room_until, self._clock() + wait)
        await self._finished(load, wait)
        if held := self._held.get(adapter.name):
            self._take(adapter, held)

    async def unload(self, name: str) -> bool:
        """Takes the adapter out of the engine. False: it is in use, just being loaded, or the
        engine does not let go of it. What is not held is gone already."""
        if name in self._loads:
            return False
        async with self._turn:
            return name not in self._held or await self._remove(name)

    def is_loading(self, name: str) -> bool:
        """Whether a load of it is under way."""
        return name in self._loads

    def note(self, adapter: AdapterSource, error: AdapterUnavailable) -> None:
        """Remembers, and tells, that the adapter cannot be had here."""
        self.failures.note(adapter, error)
        self._changed()

    def in_use(self) -> frozenset[str]:
        """The adapters that calls use."""
        return frozenset(name for name, use in self.weights.uses().items() if use.calls)

    def close(self) -> None:
        """Begins nothing more."""
        self._opened = False
        self._tasks.close()

    def _begin(self, adapter: AdapterSource, claim: Claim) -> _Load:
        held_up = asyncio.get_running_loop().create_future()
        load = self._loads[adapter.name] = _Load(
            adapter, claim, self._clock(), held_up, time.monotonic()
        )
        load.task = self._tasks.spawn(self._run(load))
        return load

    async def _finished(self, load: _Load, wait: float) -> None:
        """Waits for the load as long as anybody may, and for room only who may. Raises what the
        load raised."""
        assert load.task is not None
        ends: set[asyncio.Future[None]] = {load.task} if wait else {load.task, load.held_up}
        await asyncio.wait(ends, timeout=self._timeout + wait, return_when=asyncio.FIRST_COMPLETED)
        if not load.task.done():
            if load.held_up.done() and not wait:
                raise no_room(load.adapter.name, self.slots)
            raise not_in_time(load.adapter.name, self._timeout)
        if load.task.cancelled():
            raise AdapterUnavailable(Code.LOAD_FAILED, "The replica stops.")
        error = load.task.exception()
        if isinstance(error, AdapterUnavailable):
            raise AdapterUnavailable(error.code, str(error))

    async def _run(self, load: _Load) -> None:
        name = load.adapter.name
        try:
            await self._bring(load)
        except EngineError as error:
            raise self._note(load.adapter, error) from error
        except Exception as error:
            log.exception("loading an adapter broke", extra={"adapter": name})
            raise self._note(load.adapter, error) from error
        finally:
            del self._loads[name]
            self._changed()

    async def _bring(self, load: _Load) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                prepared = await self.weights.prepare(load.adapter)
        except TimeoutError:
            raise not_in_time(load.adapter.name, self._timeout) from None
        # First come, first served: whoever waits for room stands before those that come later.
        async with self._queue:
            close_at = self._clock() + _WAIT_BEFORE_CLOSING_S
            try:
                while not await self._put(load, prepared):
                    if not load.held_up.done():
                        load.held_up.set_result(None)
                    if self._clock() >= close_at:
                        self._close_one(load.claim)
                    await asyncio.sleep(_LOOK_FOR_ROOM_S)
            finally:
                self._reopen()

    async def _put(self, load: _Load, prepared: Prepared) -> bool:
        """Puts it into the engine; false where there is no room yet."""
        async with self._turn:
            if load.adapter.name in self._held:
                return True  # it was closed, and stayed
            try:
                await self._make_room(load)
            except AdapterUnavailable:
                if self._clock() >= load.room_until:
                    raise
                return False
            await self.weights.add(prepared)
            wish = self._wishes.get(load.adapter.name)
            pinned = load.adapter.pinned if wish is None else wish.pinned
            self._held[load.adapter.name] = replace(prepared.adapter, pinned=pinned)
            self.failures.clear(load.adapter.name)
        took = round((time.monotonic() - load.began) * 1000)
        said = {"adapter": prepared.name, "digest": prepared.adapter.digest, "took_ms": took}
        log.info("adapter loaded", extra=said)
        return True

    def _close_one(self, claim: Claim) -> None:
        """Keeps new calls from one of those that are always in use, so that it can leave."""
        if self._closed:
            return
        self._closed = who_closes(self._occupants(set()), claim) or ""
        if self._closed:
            log.info(
                "adapter takes no new calls until it has left", extra={"adapter": self._closed}
            )
            self.weights.close(self._closed)

    def _reopen(self) -> None:
        closed, self._closed = self._closed, ""
        if closed in self._held:
            self.weights.reopen(closed)

    async def _make_room(self, load: _Load) -> None:
        stay: set[str] = set()  # they came into use just now
        while True:
            going = who_goes(self._occupants(stay), self.slots, load.claim)
            if going is None:
                raise no_room(load.adapter.name, self.slots)
            if not going:
                return
            if not await self._remove(going[0]):
                stay.add(going[0])

    async def _remove(self, name: str) -> bool:
        # Gone before the engine is asked: no call may begin with it meanwhile.
        held, gone = self._held.pop(name), False
        try:
            gone = await self.weights.remove(name)
        finally:
            if not gone:
                self._held[name] = held  # and so its slot is not taken for a free one
        if not gone:
            return False
        log.info("adapter unloaded", extra={"adapter": name})
        self._changed()
        return True

    def _occupants(self, stay: set[str]) -> list[Occupant]:
        uses = self.weights.uses()
        occupants = []
        for name in self._held:
            use = uses.get(name)
            in_use = name in stay or (use is not None and use.calls > 0)
            last = use.last if use is not None else 0.0
            occupants.append(Occupant(name, self._standing(name), in_use, last))
        return occupants

    def _standing(self, name: str) -> Standing:
        if self._held[name].pinned:
            return Standing.PINNED
        return Standing.KEPT if name in self._wishes else Standing.GUEST

    def _may_have_room(self) -> bool:
        """Whether anybody may have to leave one day."""
        pinned = sum(held.pinned for held in self._held.values())
        return pinned < self.slots

    def _see_that_possible(self, adapter: AdapterSource, claim: Claim) -> None:
        # A lesser claim that is on its way stands in nobody's way.
        coming = 1 + sum(load.claim >= claim for load in self._loads.values())
        if who_goes(self._occupants(set()), self.slots, claim, coming) is None:
            raise no_room(adapter.name, self.slots)

    def _take(self, adapter: AdapterSource, held: AdapterSource) -> None:
        self._see_that_same(adapter, held)
        if adapter.pinned and not held.pinned and adapter.name not in self._wishes:
            self._held[adapter.name] = replace(held, pinned=True)
            self._changed()

    def _see_that_same(self, asked: AdapterSource, other: AdapterSource) -> None:
        if asked.digest and other.digest and asked.digest != other.digest:
            raise AdapterUnavailable(
                Code.MISMATCH,
                f"The adapter {asked.name} is here with other bytes: {other.digest}, asked for is "
                f"{asked.digest}.",
            )

    def _note(self, adapter: AdapterSource, error: Exception) -> AdapterUnavailable:
        """Remembers why a load failed; what those hear who wait for it."""
        if not isinstance(error, AdapterUnavailable):
            why = str(error).removeprefix(f"adapter {adapter.name}: ")
            told = why if isinstance(error, EngineError) else type(error).__name__
            error = AdapterUnavailable(
                Code.LOAD_FAILED, f"The adapter {adapter.name} cannot be loaded here: {told}"
            )
        if error.code is not Code.SLOTS_FULL:
            self.failures.note(adapter, error)
            log.warning("adapter not loaded: %s", error, extra={"adapter": adapter.name})
        return error

    def _changed(self) -> None:
        for changed in self._watchers:
            changed()


async def load_named(table: AdapterTable, adapter: AdapterSource) -> None:
    """Loads an adapter that the replica begins with. One that is not there goes on failing while
    the replica serves; raises `CannotLoad` where it was given as a directory, whose bytes nobody
    else has."""
    try:
        await table.load(adapter)
    except AdapterUnavailable as error:
        if adapter.source and not adapter.digest:
            raise CannotLoad(str(error)) from error
