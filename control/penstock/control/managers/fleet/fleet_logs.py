"""The logs of all processes of a fleet, read together: of the head's machine, and of each node's.

Each machine tells its lines in the order of their times; here they are put together by these, as
the machines' clocks have them. What is to be known of the reading itself stands among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.control.errors import PenstockError, Unavailable
from penstock.control.machine_logs.lines import micros, our_ids
from penstock.control.machine_logs.values import (
    LoggedLine,
    LoggedPart,
    LogQuestion,
    MachineLogs,
)
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.fleet.replica_logs import MOST_LINES, AgentLogs
from penstock.control.state.fleet.replica import NodeId, NodeState
from penstock.control.supervision.clock import Clock

MOST_READERS: Final = 4
MOST_BYTES: Final = 16 << 20  # of what was written before
MOST_IDS: Final = 100  # of requests that one client gave one name
# Of lines that are followed: so long they wait for others that were written before them.
GATHER: Final = timedelta(milliseconds=500)
HERE: Final = ""  # the machine of the head, among nodes
AGAIN_LOOKS: Final = 10  # after which a node is asked again that does not answer
ELSEWHERE: Final = "its log is where it was started, and not read here"
_AHEAD: Final = 8  # parts that are taken from machines before they are told
_AT_ONCE: Final = 200  # lines that are told together


class LogSources(NamedTuple):
    """Who keeps logs: agents, and the head."""

    agents: AgentLogs
    own: MachineLogs


class FleetLine(NamedTuple):
    """A line, and of which node; empty: of the head's machine."""

    line: LoggedLine
    node: str


class FleetNote(NamedTuple):
    """What is to be known of the lines."""

    text: str
    is_error: bool = False  # lines are missing


Told = FleetLine | FleetNote


class FleetLogs:
    """Reads them for so many at a time."""

    def __init__(self, cluster: Cluster, sources: LogSources, clock: Clock) -> None:
        self._cluster = cluster
        self._sources = sources
        self._clock = clock
        self._readers = 0

    async def read(self, asked: LogQuestion) -> AsyncGenerator[Sequence[Told], None]:
        """What is asked for, some at a time, by the times of the lines; nothing now and then, which
        says that somebody is there. Raises `Unavailable` where too many read.

        Lines name a request by our id. Where the client's is asked for, the gateway's own line of
        the request says what ours is: lines with that are told as well.
        """
        if self._readers >= MOST_READERS:
            raise Unavailable(f"{MOST_READERS} read all logs here already: end one of them first")
        self._readers += 1
        try:
            yield []
            if asked.ids:
                asked = asked._replace(ids=await self._all_ids(asked))
            async with aclosing(self._machines(asked)) as machines:
                for told in await machines.before():
                    yield told
                while asked.follow:
                    await self._clock.sleep(GATHER)
                    yield machines.next()
        finally:
            self._readers -= 1

    async def _all_ids(self, asked: LogQuestion) -> tuple[str, ...]:
        """By which lines may name the request."""
        once = asked._replace(follow=False, of="")
        async with aclosing(self._machines(once)) as machines:
            found = await machines.before()
        lines = [each.line.text for told in found for each in told if isinstance(each, FleetLine)]
        ours = dict.fromkeys(known for line in lines for known in our_ids(line))
        return tuple(dict.fromkeys((*asked.ids, *list(ours)[:MOST_IDS])))

    def _machines(self, asked: LogQuestion) -> _Machines:
        return _Machines(self._cluster, self._sources, asked, micros(self._clock.now()))


class _Machines:
    """All that are read for one reader, each by a task of its own."""

    def __init__(
        self, cluster: Cluster, sources: LogSources, asked: LogQuestion, now_us: int
    ) -> None:
        self._cluster = cluster
        self._sources = sources
        self._asked = asked
        self._now_us = now_us
        self._tasks: dict[str, asyncio.Task[None]] = {}  # `aclose` ends them
        self._parts: asyncio.Queue[tuple[str, LoggedPart | PenstockError]] = asyncio.Queue(_AHEAD)
        self._reached: dict[str, int] = {}  # the time of the last line of each
        self._looks = 0
        self._begun: dict[str, int] = {}  # at which look each was asked last
        self._troubles: dict[str, str] = {}  # of each, as it was told
        self._held: list[FleetLine] = []

    async def aclose(self) -> None:
        """Nobody reads on."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def before(self) -> Iterable[Sequence[Told]]:
        """What was written before, from all machines that answer."""
        found, notes = list[FleetLine](), list[FleetNote]()
        elsewhere = set(self._cluster.view().gateways) if not self._asked.of else set[str]()
        nodes, troubles = self._nodes()
        notes += troubles
        waited_for = {HERE, *nodes}
        for node in (HERE, *nodes):
            self._begin(node, self._asked)
        while waited_for:
            node, part = await self._parts.get()
            if isinstance(part, PenstockError) or part.caught_up:
                waited_for.discard(node)
            notes += self._notes_of(node, part)
            found = _newest([*found, *self._lines_of(node, part)], self._asked.tail)
            elsewhere -= set(part.gateways) if isinstance(part, LoggedPart) else set()
        notes += [FleetNote(f"gateway {each}: {ELSEWHERE}") for each in sorted(elsewhere)]
        return [notes, *(found[at : at + _AT_ONCE] for at in range(0, len(found), _AT_ONCE))]

    def next(self) -> Sequence[Told]:
        """What came since, of lines that others cannot come before."""
        self._looks += 1
        nodes, notes = self._nodes()
        came: list[FleetLine] = []
        while not self._parts.empty():
            node, part = self._parts.get_nowait()
            notes = [*notes, *self._notes_of(node, part)]
            came += self._lines_of(node, part)
        for node in nodes:
            self._go_on(node)
        until = max(map(_time, self._held), default=0)
        lines = sorted([*self._held, *came], key=_time)
        self._held = [each for each in lines if _time(each) > until]
        return [*notes, *(each for each in lines if _time(each) <= until)]

    def _nodes(self) -> tuple[Sequence[str], Sequence[FleetNote]]:
        """Those that are heard, and what is to be told of the others."""
        ready, notes = list[str](), list[FleetNote]()
        for name, node in sorted(self._cluster.view().nodes.items()):
            if node.state is NodeState.READY:
                ready.append(name)
            else:
                notes += self._trouble(name, f"node {name} is {node.state}: its logs are not read")
        return ready, notes

    def _trouble(self, node: str, text: str) -> Sequence[FleetNote]:
        """Told once, until it is over."""
        if self._troubles.get(node) == text:
            return []
        self._troubles[node] = text
        return [FleetNote(text, is_error=True)]

    def _go_on(self, node: str) -> None:
        """With a node that has come, or whose agent has ended and is there again."""
        task, begun = self._tasks.get(node), self._begun.get(node, -AGAIN_LOOKS)
        if (task is None or task.done()) and self._looks - begun >= AGAIN_LOOKS:
            since = max(self._reached.get(node, self._now_us) + 1, self._asked.since_us)
            self._begin(node, self._asked._replace(since_us=since, tail=MOST_LINES))

    def _begin(self, node: str, asked: LogQuestion) -> None:
        self._begun[node] = self._looks
        self._tasks[node] = asyncio.ensure_future(self._read(node, asked))

    async def _read(self, node: str, asked: LogQuestion) -> None:
        try:
            async with aclosing(self._parts_of(node, asked)) as parts:
                async for part in parts:
                    await self._parts.put((node, part))
        except PenstockError as error:
            await self._parts.put((node, error))

    def _parts_of(self, node: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        if node == HERE:
            return self._sources.own.read(asked)
        facts = self._cluster.view().nodes[NodeId(node)].facts
        return self._sources.agents.read_all(facts.agent_address, asked)

    def _notes_of(self, node: str, part: LoggedPart | PenstockError) -> Sequence[FleetNote]:
        where = f"node {node}" if node else "the head"
        if isinstance(part, PenstockError):
            return self._trouble(node, f"{where}: {part}")
        self._troubles.pop(node, None)
        return [FleetNote(f"{where}: {part.note}")] if part.note else []

    def _lines_of(self, node: str, part: LoggedPart | PenstockError) -> Sequence[FleetLine]:
        if isinstance(part, PenstockError) or not part.lines:
            return []
        self._reached[node] = part.lines[-1].time_us
        return [FleetLine(line, node) for line in part.lines]


def _time(told: FleetLine) -> int:
    return told.line.time_us


def _newest(lines: Iterable[FleetLine], most: int) -> list[FleetLine]:
    """The last of them, by their times."""
    in_order = sorted(lines, key=_time)
    found = in_order[-most:] if most else []
    size = sum(len(each.line.text) for each in found)
    while size > MOST_BYTES:
        size -= len(found.pop(0).line.text)
    return found
