"""The adapters of a node: fetched from the head by digest, checked whenever they are handed out.

    <directory>/<digest>/...    as `store/adapters/content.py` has them
    <directory>/fetching/...    what is on its way from the head

Each content is fetched and checked once at a time, however many replicas ask for it. What nobody on
this node holds, is to hold or was handed lately makes room for others, the longest unused first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, TypeAlias

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, WEIGHTS_FILE, Digest, is_digest
from penstock.control.errors import (
    InvalidInput,
    PenstockError,
    StoreUnavailable,
    Unavailable,
    writing_below,
)
from penstock.control.node_agent.adapter_fetch import PATIENCE, AdapterSource, receive
from penstock.control.store.adapters.content import AdapterContents
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

# What was handed out for so long may be on its way into an engine that has not told so yet.
LOADING: Final = timedelta(minutes=5)
LOOK_AGAIN: Final = timedelta(minutes=1)
STOPPING: Final = "this node agent is stopping: ask again later"
LARGEST_CONFIG: Final = 1 << 20
_FETCHING: Final = "fetching"

# Where a content lies, why it does not, or nothing: it was just thrown away.
_Outcome: TypeAlias = "Path | PenstockError | None"


@dataclass(frozen=True, slots=True)
class Cached:
    """A content that lies here."""

    digest: Digest
    size: int  # bytes
    used_at: float  # when it was handed out last, by the wall clock


def surplus(cached: Sequence[Cached], most_bytes: int, needed: Collection[str]) -> list[Digest]:
    """What to throw away so that no more than `most_bytes` lie here, as far as that goes."""
    over = sum(each.size for each in cached) - most_bytes
    going = []
    for each in sorted(cached, key=lambda it: it.used_at):
        if over <= 0:
            break
        if each.digest not in needed:
            going.append(each.digest)
            over -= each.size
    return going


class AdapterCache:
    """Owns its directory; all methods run on the loop of `tasks`."""

    def __init__(
        self,
        directory: Path,
        head: AdapterSource,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        *,
        most_bytes: int,
        needed: Callable[[], Collection[str]],
        limits: FamilyLimits = FamilyLimits(),  # noqa: B008 - immutable
        patience: timedelta = PATIENCE,
    ) -> None:
        """`needed`: digests of what replicas of this node hold or are to hold. `limits`: of what is
        fetched; the head has judged already whether it fits a deployment."""
        self._directory = directory
        self._contents = AdapterContents(directory)
        self._head = head
        self._clock = clock
        self._tasks = tasks
        self._most_bytes = most_bytes
        self._needed = needed
        self._limits = limits
        self._patience = patience
        self._began = clock.monotonic()
        self._handed: dict[str, float] = {}  # when, by the monotonic clock
        self._flights: dict[str, asyncio.Task[_Outcome]] = {}
        self._stopping = False

    def throw_away_leftovers(self) -> None:
        """What an agent that was killed had begun to fetch; before anything else is asked."""
        shutil.rmtree(self._directory / _FETCHING, ignore_errors=True)
        self._contents.throw_away_leftovers()

    async def content(self, digest: str) -> Path:
        """The directory of a content that was found whole just now, fetched if it has to be. Asked
        again while that lasts, all wait for the same; it goes on when nobody waits any more.

        Raises `InvalidInput` for what is no digest, `NotFound` where the head does not have it,
        `BadAdapter` for what no engine could load, `Unavailable` and `StoreUnavailable`.
        """
        if not is_digest(digest):
            raise InvalidInput(f"{digest!r} is no digest of an adapter: 64 hexadecimal digits")
        while not self._stopping:
            self._handed[digest] = self._clock.monotonic()
            flight = self._flights.get(digest)
            found = await self._landed(flight or self._begin(digest, self._provide(Digest(digest))))
            if isinstance(found, PenstockError):
                raise found
            if found is not None:
                self._handed[digest] = self._clock.monotonic()
                return found
            await asyncio.sleep(0)  # lets what has ended leave the table
        raise Unavailable(STOPPING)

    async def run(self) -> None:
        """Throws away what is too much, now and then, until cancelled; then what is on its way ends
        too, and nobody is given anything any more."""
        try:
            while True:
                await self._evict()
                await self._clock.sleep(LOOK_AGAIN)
        finally:
            self._stopping = True
            for flight in self._flights.values():
                flight.cancel()

    # ---- one content

    def _begin(self, digest: str, work: Coroutine[Any, Any, _Outcome]) -> asyncio.Task[_Outcome]:
        flight = self._flights[digest] = self._tasks.create_task(work)
        flight.add_done_callback(lambda _: self._flights.pop(digest))
        return flight

    async def _landed(self, flight: asyncio.Task[_Outcome]) -> _Outcome:
        try:
            return await asyncio.shield(flight)
        except asyncio.CancelledError:
            if flight.cancelled():
                raise Unavailable(STOPPING) from None
            raise

    async def _provide(self, digest: Digest) -> _Outcome:
        try:
            if not await asyncio.to_thread(self._contents.is_intact, digest):
                await self._fetch(digest)
                await self._evict()
            return await asyncio.to_thread(self._used, digest)
        except PenstockError as error:
            log.warning("no adapter %s: %s", digest, error)
            return error
        except OSError as error:
            return StoreUnavailable(f"cannot read {self._directory}: {error.strerror}")

    async def _fetch(self, digest: Digest) -> None:
        """Takes the content in, in place of one that has rotted."""
        began = self._clock.monotonic()
        largest = {CONFIG_FILE: LARGEST_CONFIG, WEIGHTS_FILE: self._limits.max_bytes}
        async with self._scratch() as scratch:
            await receive(self._head, digest, scratch, largest, self._patience)
            await asyncio.to_thread(self._contents.take_in, scratch, self._limits)
        log.info("adapter %s fetched in %.3f s", digest, self._clock.monotonic() - began)

    @asynccontextmanager
    async def _scratch(self) -> AsyncIterator[Path]:
        with writing_below(self._directory):
            fetching = self._directory / _FETCHING
            fetching.mkdir(parents=True, exist_ok=True)
            scratch = Path(mkdtemp(dir=fetching))
            try:
                yield scratch
            finally:
                await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    def _used(self, digest: Digest) -> Path:
        """Where the content lies, marked as used for the agents that come after this one."""
        directory = self._directory / digest
        with suppress(OSError):
            os.utime(directory)
        return directory

    # ---- room

    async def _evict(self) -> None:
        cached = await asyncio.to_thread(self._cached)
        while going := surplus(cached, self._most_bytes, self._kept(cached)):
            # One at a time: while it goes, another may be asked for, and is to stay then.
            digest = going[0]
            await asyncio.wait([self._begin(digest, self._throw_away(digest))])
            cached = [each for each in cached if each.digest != digest]

    def _kept(self, cached: Sequence[Cached]) -> set[str]:
        return {*self._needed(), *self._flights, *self._lately_handed(cached)}

    def _lately_handed(self, cached: Sequence[Cached]) -> Iterator[str]:
        """An agent that was just started does not know what its predecessor handed out."""
        since = self._clock.monotonic() - LOADING.total_seconds()
        return (it.digest for it in cached if self._handed.get(it.digest, self._began) > since)

    async def _throw_away(self, digest: Digest) -> _Outcome:
        try:
            await asyncio.to_thread(self._contents.remove, digest)
            self._handed.pop(digest, None)
            log.info("adapter %s thrown away to make room", digest)
        except StoreUnavailable as error:
            log.error("cannot throw adapter %s away: %s", digest, error)
        return None

    def _cached(self) -> list[Cached]:
        """What lies here, as far as that can be read."""
        found: list[Cached] = []
        try:
            stored = self._contents.stored()
        except StoreUnavailable as error:
            log.error("no room is made for adapters: %s", error)
            return found
        for digest in stored:
            directory = self._directory / digest
            with suppress(OSError):
                size = sum(each.stat().st_size for each in directory.iterdir())
                found.append(Cached(digest, size, directory.stat().st_mtime))
        return found
