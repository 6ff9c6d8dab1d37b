"""The logs of a machine, read together: what was written, by its times, and what is."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final

from penstock.control.errors import Unavailable
from penstock.control.machine_logs.backwards import Stopped, lines_back
from penstock.control.machine_logs.following import CUT, Following, WholeLines
from penstock.control.machine_logs.lines import is_of, logged, micros, naming, time_of
from penstock.control.machine_logs.values import (
    GATEWAY,
    LoggedLine,
    LoggedPart,
    LogQuestion,
    Source,
)
from penstock.control.supervision.clock import Clock

MOST_READERS: Final = 4  # each may read through all that is kept
MOST_BYTES: Final = 8 << 20  # of what was written before
LOOK_EVERY: Final = timedelta(milliseconds=250)
NEWCOMERS_EVERY: Final = 4  # looks
ALIVE_EVERY: Final = timedelta(seconds=5)
_PART_BYTES: Final = 1 << 20  # of text that is told at a time, about
_READS: Final = 16  # of one log, before others have their turn


class LocalLogs:
    """`MachineLogs` of this machine. `sources`: the logs there are, found in a thread."""

    def __init__(self, sources: Callable[[], Iterable[Source]], clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self._readers = 0

    async def read(self, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        """Lines, and something each five seconds. Raises `Unavailable` where too many read."""
        if self._readers >= MOST_READERS:
            raise Unavailable(
                f"{MOST_READERS} read the logs of this machine already: end one first"
            )
        self._readers += 1
        reading = _Reading(self._sources, asked, self._clock)
        try:
            with closing(reading):
                begun = asyncio.ensure_future(asyncio.to_thread(reading.before))
                while not (await asyncio.wait([begun], timeout=ALIVE_EVERY.total_seconds()))[0]:
                    yield LoggedPart()
                lines, note = await begun
                for part in _parts(lines):
                    yield part
                yield LoggedPart(note=note, caught_up=True, gateways=reading.gateways)
                while asked.follow:
                    for part in await self._more(reading):
                        yield part
        finally:
            self._readers -= 1

    async def _more(self, reading: _Reading) -> Sequence[LoggedPart]:
        """What is written next; nothing where that takes long."""
        until = self._clock.monotonic() + ALIVE_EVERY.total_seconds()
        while self._clock.monotonic() < until:
            lines, note = await asyncio.to_thread(reading.next)
            if lines or note:
                return [LoggedPart(note=note), *_parts(lines)]
            await self._clock.sleep(LOOK_EVERY)
        return [LoggedPart()]


class _Reading:
    """One reader's. Blocks: for a thread, one call after the other."""

    def __init__(
        self, sources: Callable[[], Iterable[Source]], asked: LogQuestion, clock: Clock
    ) -> None:
        self._sources = sources
        self._asked = asked
        self._clock = clock
        self.gateways: Sequence[str] = ()  # whose logs there are
        self._followed: dict[Path, _Followed] = {}
        self._left = set[Path]()  # that were followed to their ends, and are told of only once
        self._looks = 0
        self._closed = False

    def close(self) -> None:
        """Nobody reads on; a call that is under way ends soon."""
        self._closed = True
        for each in list(self._followed.values()):
            each.following.close()

    def before(self) -> tuple[Sequence[LoggedLine], str]:
        """What was written so far, in order, and what is left out of it."""
        sources = list(self._wanted())
        self.gateways = [who.name for who, *_ in sources if who.kind == GATEWAY]
        if self._asked.follow:
            for source in sources:
                self._follow(source, whole=False)
        each = [self._back(source) for source in sources]
        newest = heapq.merge(*each, key=lambda line: line.time_us, reverse=True)
        found, left_out = list[LoggedLine](), ""
        size = 0
        with suppress(Stopped):
            for line in newest:
                size += len(line.text)
                if len(found) >= self._asked.tail or size > MOST_BYTES:
                    left_out = "there are more lines before these"
                    break
                found.append(line)
        found.reverse()
        return sorted(found, key=lambda line: line.time_us), left_out

    def next(self) -> tuple[Sequence[LoggedLine], str]:
        """What was written since the last call, in order, and what is to be known of it."""
        self._looks += 1
        if not self._looks % NEWCOMERS_EVERY:
            written = {each.path: each for each in self._wanted() if each.written}
            self._let_go(written.keys())
            for source in written.values():
                if source.path not in self._followed:
                    self._follow(source, whole=source.path not in self._left)
        names = naming(self._asked.ids)
        lines, cut = list[LoggedLine](), False
        for each in self._followed.values():
            lines += (line for line in each.read(self._now()) if names(line.text.encode()))
            cut |= each.was_cut()
        return sorted(lines, key=lambda line: line.time_us), CUT if cut else ""

    def _wanted(self) -> Iterable[Source]:
        return (each for each in self._sources() if is_of(each.author, self._asked.of))

    def _follow(self, source: Source, *, whole: bool) -> None:
        if source.written and not self._closed:
            self._followed[source.path] = _Followed(source, whole=whole)

    def _let_go(self, written: Collection[Path]) -> None:
        """Of those that nobody writes to any more, and that are read to their ends."""
        for path in [path for path in self._followed if path not in written]:
            if self._followed[path].is_read:
                self._followed.pop(path).following.close()
                self._left.add(path)

    def _back(self, source: Source) -> Iterable[LoggedLine]:
        followed = self._followed.get(source.path)
        end = followed.following.begins_at if followed else None
        return lines_back(source, end, self._asked, lambda: self._closed)

    def _now(self) -> int:
        return micros(self._clock.now())


class _Followed:
    """One log that is followed."""

    def __init__(self, source: Source, *, whole: bool) -> None:
        self.following = Following(source.path, whole=whole)
        self._author = source.author
        self._lines = WholeLines()
        self._latest = 0  # of the last line that told its time
        self.is_read = False  # as far as it was written when that was tried last

    def read(self, now_us: int) -> Iterable[LoggedLine]:
        """Whole lines that were written since."""
        self.is_read = True
        for data in takewhile(bool, (self.following.read() for _ in range(_READS))):
            self.is_read = False
            for line in self._lines.of(data).decode().splitlines():
                if line.strip():
                    told = time_of(line)
                    self._latest = told or self._latest
                    yield logged(self._author, line, told or self._latest or now_us)

    def was_cut(self) -> bool:
        """Whether lines are missing since this was asked last."""
        was, self.following.missing = self.following.missing, False
        return was


def _parts(lines: Iterable[LoggedLine]) -> Iterator[LoggedPart]:
    part, size = list[LoggedLine](), 0
    for line in lines:
        part.append(line)
        size += len(line.text)
        if size >= _PART_BYTES:
            yield LoggedPart(part)
            part, size = [], 0
    if part:
        yield LoggedPart(part)
