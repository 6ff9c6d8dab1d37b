"""The logs of all processes of a fleet, read together: of the head's machine, and of each node's.

Each machine tells its lines in the order of their times; here they are put together by these, as
the machines' clocks have them. What is to be known of the reading itself stands among them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.control.errors import PenstockError, Unavailable
from penstock.control.machine_logs.lines import micros, our_ids
from penstock.control.machine_logs.sources import COMPARER_LOG, HEAD_LOG, WARM_POOL_LOG
from penstock.control.machine_logs.values import (
    LoggedLine,
    LoggedPart,
    LogQuestion,
    MachineLogs,
)
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.fleet.replica_logs import MOST_LINES, AgentLogs
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import NodeId, NodeState
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

MOST_READERS: Final = 4
MOST_BYTES: Final = 16 << 20  # of what was written before
MOST_IDS: Final = 100  # of requests that one client gave one name
# Of lines that are followed: so long they wait for others that were written before them.
GATHER: Final = timedelta(milliseconds=500)
HERE: Final = ""  # the machine of the head, among nodes
AGAIN_LOOKS: Final = 10  # after which a node is asked again that does not answer
ELSEWHERE: Final = "its log is where it was started, and not read here"
NOBODY: Final = "no process or deployment is called so, and no log of that name has such lines"
ONLY_ONES: Final = (HEAD_LOG, COMPARER_LOG, WARM_POOL_LOG)  # that have no names
ALIVE_EVERY: Final = timedelta(seconds=5)
MOST_WAITS: Final = 6  # for a machine that tells no line
SILENT: Final = (
    f"it has told no line for {MOST_WAITS * ALIVE_EVERY.seconds} s, and is waited for no longer"
)
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
_Part = LoggedPart | PenstockError


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
                lines = list[FleetLine]()
                once = asked._replace(follow=False, of="")
                async with aclosing(self._machines(once)) as machines:
                    async for told in machines.before():
                        lines += (each for each in told if isinstance(each, FleetLine))
                        yield []
                asked = asked._replace(ids=_all_ids(asked.ids, lines))
            async with aclosing(self._machines(asked)) as machines:
                async for told in machines.before():
                    yield told
                while asked.follow:
                    await self._clock.sleep(GATHER)
                    yield machines.next()
        finally:
            self._readers -= 1

    def _machines(self, asked: LogQuestion) -> _Machines:
        return _Machines(self._cluster, self._sources, asked, self._clock)


class _Machines:
    """All that are read for one reader, each by a task of its own."""

    def __init__(
        self, cluster: Cluster, sources: LogSources, asked: LogQuestion, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._sources = sources
        self._asked = asked
        self._clock = clock
        self._now_us = micros(clock.now())
        self._tasks: dict[str, asyncio.Task[None]] = {}  # `aclose` ends them
        # None: `ALIVE_EVERY` is over once more.
        self._parts: asyncio.Queue[tuple[str, _Part | None]] = asyncio.Queue(_AHEAD)
        self._reached: dict[str, list[LoggedLine]] = {}  # the last of each, all of one moment
        self._again: dict[str, list[LoggedLine]] = {}  # that come once more, as it is asked anew
        self._looks = 0
        self._begun: dict[str, int] = {}  # at which look each was asked last
        self._troubles: dict[str, str] = {}  # of each, as it was told
        self._held: list[FleetLine] = []

    async def aclose(self) -> None:
        """Nobody reads on."""
        await _ended(self._tasks.values())

    async def before(self) -> AsyncGenerator[Sequence[Told], None]:
        """What was written before, from all machines that answer; nothing each five seconds."""
        found, view = list[FleetLine](), self._cluster.view()
        elsewhere = {name for name in view.gateways if self._asked.of in ("", name)}
        nodes, notes = self._nodes()
        waits = dict.fromkeys((HERE, *nodes), 0)  # for lines, in `ALIVE_EVERY`
        for node in waits:
            self._begin(node, self._asked)
        ticking = asyncio.ensure_future(self._tick())
        try:
            while waits:
                node, part = await self._parts.get()
                if part is None:
                    yield []
                    notes = [*notes, *self._given_up(waits)]
                    continue
                notes = [*notes, *self._notes_of(node, part)]
                lines = self._lines_of(node, part)
                found = _newest([*found, *lines], self._asked.tail)
                if isinstance(part, PenstockError) or part.caught_up:
                    waits.pop(node, None)
                elif lines and node in waits:
                    waits[node] = 0
                elsewhere -= set(part.gateways) if isinstance(part, LoggedPart) else set()
        finally:
            await _ended([ticking])
        notes = [*notes, *(FleetNote(f"gateway {it}: {ELSEWHERE}") for it in sorted(elsewhere))]
        if self._asked.tail and not (found or _is_known(view, self._asked.of)):
            notes = [*notes, FleetNote(f"{self._asked.of}: {NOBODY}", is_error=True)]
        yield notes
        for at in range(0, len(found), _AT_ONCE):
            yield found[at : at + _AT_ONCE]

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(ALIVE_EVERY)
            await self._parts.put((HERE, None))

    def _given_up(self, waits: dict[str, int]) -> Sequence[FleetNote]:
        """Time has passed: what is told of those that are waited for no longer."""
        notes = list[FleetNote]()
        for node in list(waits):
            waits[node] += 1
            if waits[node] > MOST_WAITS:
                del waits[node]
                self._tasks[node].cancel()
                notes += self._notes_of(node, Unavailable(SILENT))
        return notes

    def next(self) -> Sequence[Told]:
        """What came since, of lines that others cannot come before."""
        self._looks += 1
        nodes, notes = self._nodes()
        came: list[FleetLine] = []
        while not self._parts.empty():
            node, part = self._parts.get_nowait()
            if part is None:
                continue
            notes = [*notes, *self._notes_of(node, part)]
            came += self._lines_of(node, part)
        for node in (HERE, *nodes):
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
            self._again[node] = reached = list(self._reached.get(node, ()))
            since = max(reached[0].time_us if reached else self._now_us, self._asked.since_us)
            self._begin(node, self._asked._replace(since_us=since, tail=MOST_LINES))

    def _begin(self, node: str, asked: LogQuestion) -> None:
        self._begun[node] = self._looks
        self._tasks[node] = asyncio.ensure_future(self._read(node, asked))

    async def _read(self, node: str, asked: LogQuestion) -> None:
        """Its parts; at last why there are no more, unless all is told."""
        caught_up = False
        trouble: PenstockError = Unavailable("it ended before it had told all")
        try:
            async with aclosing(self._parts_of(node, asked)) as parts:
                async for part in parts:
                    caught_up |= part.caught_up
                    await self._parts.put((node, part))
        except PenstockError as error:
            caught_up, trouble = False, error
        except Exception as error:
            log.exception("logs cannot be read", extra={"node": node})
            caught_up, trouble = False, Unavailable(f"its logs cannot be read: {error!r}")
        if not caught_up:
            await self._parts.put((node, trouble))

    def _parts_of(self, node: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        if node == HERE:
            return self._sources.own.read(asked)
        facts = self._cluster.view().nodes[NodeId(node)].facts
        return self._sources.agents.read_all(facts.agent_address, asked)

    def _notes_of(self, node: str, part: _Part) -> Sequence[FleetNote]:
        where = f"node {node}" if node else "the head"
        if isinstance(part, PenstockError):
            return self._trouble(node, f"{where}: {part}")
        self._troubles.pop(node, None)
        return [FleetNote(f"{where}: {part.note}")] if part.note else []

    def _lines_of(self, node: str, part: _Part) -> Sequence[FleetLine]:
        if isinstance(part, PenstockError):
            return []
        lines, again = list[LoggedLine](), self._again.get(node, [])
        for line in part.lines:
            if line in again:
                again.remove(line)
            else:
                lines.append(line)
        known = [*self._reached.get(node, ()), *lines]
        latest = max((line.time_us for line in known), default=0)
        self._reached[node] = [line for line in known if line.time_us == latest]
        return [FleetLine(line, node) for line in lines]


async def _ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _all_ids(asked: Sequence[str], found: Iterable[FleetLine]) -> tuple[str, ...]:
    """By which lines may name the request."""
    ours = dict.fromkeys(known for each in found for known in our_ids(each.line.text))
    return tuple(dict.fromkeys((*asked, *list(ours)[:MOST_IDS])))


def _is_known(view: ClusterView, name: str) -> bool:
    """Whether somebody who may have written is called so."""
    groups = view.deployments, view.replicas, view.gateways, view.nodes, ONLY_ONES
    return not name or any(name in group for group in groups)


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
