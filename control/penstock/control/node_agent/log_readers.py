"""Who reads logs: so many at a time, each at their own pace, and none on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path
from typing import Final

from penstock.control.errors import Code, InvalidInput, NotFound, Unavailable
from penstock.control.machine_logs.following import CUT, Following, WholeLines
from penstock.control.machine_logs.values import LoggedPart, LogQuestion, MachineLogs
from penstock.control.node_agent.log_reading import (
    Piece,
    is_marked,
    last_lines,
    parts,
    run_before,
    runs,
)
from penstock.control.supervision.clock import Clock
from penstock.v1 import nodes_pb2

MOST_READERS: Final = 16
MOST_FOLLOWED: Final = 64 << 20  # bytes of one answer
LOOK_EVERY: Final = timedelta(milliseconds=250)
ALIVE_EVERY: Final = 20  # looks; the head takes a longer silence for the agent's end

LogPart = nodes_pb2.LogPart


class LogReaders:
    """`path_of`: where a replica logs, which raises `InvalidInput` for what is no replica's id.
    `is_here`: whether the agent has the replica, whatever it does now. `machine`: the logs of all
    that runs here."""

    def __init__(
        self,
        path_of: Callable[[str], Path],
        is_here: Callable[[str], bool],
        machine: MachineLogs,
        clock: Clock,
    ) -> None:
        self._path_of = path_of
        self._is_here = is_here
        self._machine = machine
        self._clock = clock
        self._readers = 0

    async def read_all(
        self, asked: nodes_pb2.ReadLogsRequest
    ) -> AsyncGenerator[nodes_pb2.LoggedPart, None]:
        """What all processes of the machine logged. Raises `Unavailable` where too many read."""
        question = LogQuestion(asked.since_us, tuple(asked.ids), asked.tail, asked.follow, asked.of)
        async with aclosing(self._machine.read(question)) as parts:
            async for part in parts:
                yield _message(part)

    async def read(self, asked: nodes_pb2.ReadLogRequest) -> AsyncGenerator[LogPart, None]:
        """What a replica logged, the first part at once. Raises `unknown-replica`,
        `InvalidInput`, and `Unavailable` where too many read."""
        path = self._path_of(asked.replica_id)
        if asked.previous and asked.follow:
            raise InvalidInput("what an earlier process wrote cannot be followed: it is gone")
        if self._readers >= MOST_READERS:
            raise Unavailable(f"{MOST_READERS} logs of this node are read already: end one of them")
        self._readers += 1
        try:
            if asked.follow:
                async with aclosing(self._followed(asked, path)) as followed:
                    async for part in followed:
                        yield part
            else:
                for part in await asyncio.to_thread(self._all, asked, path):
                    yield part
        finally:
            self._readers -= 1

    def _written(
        self, asked: nodes_pb2.ReadLogRequest, run: Sequence[Piece] | None, lines: WholeLines
    ) -> list[LogPart]:
        """What there is of one run; where nothing is, that is told. Beside replicas' logs lie
        those of head and gateways: of a replica that is gone, the agent's mark has to be there."""
        if not (run and is_marked(run)) and not self._is_here(asked.replica_id):
            raise NotFound(
                f"no log of a replica {asked.replica_id!r} is kept on this node",
                Code.UNKNOWN_REPLICA,
            )
        if run is None:
            which = "an earlier process of it" if asked.previous else "it"
            return [LogPart(note=f"nothing that {which} wrote is kept")]
        data, left_out = last_lines(run, asked.tail)
        note = f"only the last {len(data):,} bytes are shown" if left_out else ""
        told = lines.of(data, last=not asked.follow)
        return [LogPart(note=note), *(LogPart(lines=part) for part in parts(told))]

    def _all(self, asked: nodes_pb2.ReadLogRequest, path: Path) -> list[LogPart]:
        run = run_before(path) if asked.previous else next(runs(path), None)
        return self._written(asked, run, WholeLines())

    def _begun(
        self, asked: nodes_pb2.ReadLogRequest, path: Path, following: Following, lines: WholeLines
    ) -> list[LogPart]:
        """What was written before it is followed, and nothing that follows."""
        run = next(runs(path), None)
        if run and run[-1].path == path:
            last = run[-1]
            run[-1] = last._replace(end=min(last.end, following.begins_at))
        return self._written(asked, run, lines)

    async def _followed(
        self, asked: nodes_pb2.ReadLogRequest, path: Path
    ) -> AsyncGenerator[LogPart, None]:
        """What was written, and what is, until the replica is here no more."""
        lines, sent, looks, gone = WholeLines(), 0, 0, False
        with closing(await asyncio.to_thread(Following, path)) as following:
            for part in await asyncio.to_thread(self._begun, asked, path, following, lines):
                yield part
            while sent < MOST_FOLLOWED:
                was_gone, gone = gone, not self._is_here(asked.replica_id)
                read, told = await asyncio.to_thread(_more, following, lines, last=was_gone)
                sent += read
                if following.missing:
                    following.missing = False
                    yield LogPart(note=CUT)
                if told:
                    yield LogPart(lines=told)
                if read:
                    continue
                if was_gone:
                    yield LogPart(note="the replica is stopped, its log ends here")
                    return
                looks += 1
                if not looks % ALIVE_EVERY:
                    yield LogPart()
                await self._clock.sleep(LOOK_EVERY)
            yield LogPart(note=f"{sent >> 20} MiB were read: ask again to follow it further")


def _message(part: LoggedPart) -> nodes_pb2.LoggedPart:
    lines = [
        nodes_pb2.LoggedLine(
            kind=line.author.kind,
            name=line.author.name,
            time_us=line.time_us,
            level=line.level,
            text=line.text,
        )
        for line in part.lines
    ]
    return nodes_pb2.LoggedPart(
        lines=lines, note=part.note, caught_up=part.caught_up, gateways=part.gateways
    )


def _more(following: Following, lines: WholeLines, *, last: bool) -> tuple[int, bytes]:
    """How much was written, and the lines that are whole by it."""
    data = following.read()
    return len(data), lines.of(data, last=last and not data)
