"""The logs of a fleet, read together from machines that answer, fail, and come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from penstock.control.errors import NodeUnreachable, Unavailable
from penstock.control.machine_logs.values import Author, LoggedPart, LogQuestion
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.fleet.fleet_logs import (
    AGAIN_LOOKS,
    ALIVE_EVERY,
    ELSEWHERE,
    GATHER,
    MOST_READERS,
    MOST_WAITS,
    NOBODY,
    SILENT,
    FleetLogs,
    FleetNote,
    LogSources,
    Told,
)
from penstock.control.managers.fleet.replica_logs import MOST_LINES, LogPart, LogRequest
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.replica import NodeState, ReplicaId
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_values import node
from tests.fakes.logging_machine import LoggingMachine, line_of
from tests.fakes.waiting import until

HEAD, GATEWAY = Author("head"), Author("gateway", "gw-1")
R1, R2 = Author("replica", "mini-1"), Author("replica", "mini-2")
ALL = LogQuestion(tail=1000)
FOLLOW = LogQuestion(tail=1000, follow=True)
OURS = "req_0123456789abcdef01234567"


class Fleet:
    """A head and two nodes."""

    def __init__(self) -> None:
        self.head = LoggingMachine(gateways=("gw-1",))
        self.machines = {"n1": LoggingMachine(), "n2": LoggingMachine()}
        self.clock = ManualClock()
        self.cluster = Cluster(
            ClusterView()
            .with_node(node("n1"))
            .with_node(node("n2"))
            .with_gateway(Gateway("gw-1", GatewayState.READY))
        )
        self.logs = FleetLogs(self.cluster, LogSources(self, self.head), self.clock)

    def read_all(self, address: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        return self.machines[address.partition(":")[0]].read(asked)

    def read(
        self, address: str, replica_id: ReplicaId, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        raise AssertionError("nobody asks for one alone")

    async def told(self, asked: LogQuestion = ALL) -> list[str]:
        return words([each async for some in self.logs.read(asked) for each in some])

    def note(self, name: str, state: NodeState) -> None:
        """The head hears of a node, or does not."""
        self.cluster.replace(self.cluster.view().with_node(node(name, state)))


def words(told: Sequence[Told]) -> list[str]:
    return [_words(each) for each in told]


def _words(told: Told) -> str:
    if isinstance(told, FleetNote):
        return f"{'error' if told.is_error else 'note'}: {told.text}"
    message = json.loads(told.line.text)["message"]
    return f"{told.node or 'here'}: {message}"


@pytest.fixture
def fleet() -> Fleet:
    """Each machine has logged something."""
    fleet = Fleet()
    fleet.head.written = [line_of(HEAD, 1, "one"), line_of(GATEWAY, 4, "four")]
    fleet.machines["n1"].written = [line_of(R1, 2, "two")]
    fleet.machines["n2"].written = [line_of(R2, 3, "three")]
    return fleet


class Follower:
    """Takes what comes, as time goes on."""

    def __init__(self, fleet: Fleet, asked: LogQuestion = FOLLOW) -> None:
        self._fleet = fleet
        self._told = fleet.logs.read(asked)
        self.told: list[str] = []

    async def begin(self) -> None:
        """All of before."""
        while len(self.told) < 4:
            self.told += words(await anext(self._told))
        self.told.clear()

    async def look(self, times: int = 1) -> list[str]:
        """What comes in so many looks."""
        found: list[str] = []
        for _ in range(times):
            found += words(await self._next())
        return found

    async def _next(self) -> Sequence[Told]:
        taking = asyncio.ensure_future(anext(self._told))
        await until(lambda: taking.done() or self._fleet.clock.sleepers, "it waits")
        self._fleet.clock.advance(GATHER)
        return await taking

    async def until(self, last: str) -> list[str]:
        found: list[str] = []
        while last not in found:
            found += await self.look()
            await asyncio.sleep(0)
        return found

    async def aclose(self) -> None:
        await self._told.aclose()


async def test_lines_of_all_machines_are_put_together_by_their_times(fleet: Fleet) -> None:
    assert await fleet.told() == ["here: one", "n1: two", "n2: three", "here: four"]
    assert await fleet.told(LogQuestion(tail=2)) == ["n2: three", "here: four"]


async def test_what_could_not_be_read_is_told_and_the_rest_as_well(fleet: Fleet) -> None:
    fleet.machines["n1"].error = NodeUnreachable("the node agent has said nothing for 15 s")
    fleet.machines["n2"].note = "there are more lines before these"
    fleet.note("n3", NodeState.SILENT)
    assert await fleet.told() == [
        "error: node n3 is silent: its logs are not read",
        "error: node n1: the node agent has said nothing for 15 s",
        "note: node n2: there are more lines before these",
        "here: one",
        "n2: three",
        "here: four",
    ]


async def test_a_gateway_that_logs_where_nobody_reads_is_named(fleet: Fleet) -> None:
    view = fleet.cluster.view()
    fleet.cluster.replace(view.with_gateway(Gateway("gw-2", GatewayState.READY)))
    assert f"note: gateway gw-2: {ELSEWHERE}" in await fleet.told()
    assert await fleet.told(ALL._replace(of="mini")) == [
        "here: one",
        "n1: two",
        "n2: three",
        "here: four",
    ]


async def test_of_a_gateway_that_logs_elsewhere_that_is_told_and_a_name_of_nobody_is_an_error(
    fleet: Fleet,
) -> None:
    view = fleet.cluster.view()
    fleet.cluster.replace(view.with_gateway(Gateway("gw-2", GatewayState.READY)))
    for machine in (fleet.head, *fleet.machines.values()):
        machine.written.clear()
    assert await fleet.told(ALL._replace(of="gw-2")) == [f"note: gateway gw-2: {ELSEWHERE}"]
    assert await fleet.told(ALL._replace(of="gw-1")) == []
    assert await fleet.told(ALL._replace(of="gw-3")) == [f"error: gw-3: {NOBODY}"]


async def test_machines_that_break_or_end_too_soon_are_named_and_nobody_waits_for_them(
    fleet: Fleet,
) -> None:
    fleet.machines["n1"].error = OSError("the disk is gone")
    fleet.machines["n2"].ends = True
    assert sorted(await fleet.told())[:2] == [
        "error: node n1: its logs cannot be read: OSError('the disk is gone')",
        "error: node n2: it ended before it had told all",
    ]


@pytest.mark.parametrize("asked", [ALL, FOLLOW, ALL._replace(ids=("abcdefgh",))])
async def test_a_machine_that_only_says_that_it_is_there_is_waited_for_half_a_minute(
    fleet: Fleet, asked: LogQuestion
) -> None:
    fleet.machines["n1"].hangs = True
    told, passed = list[str](), 0
    async with aclosing(fleet.logs.read(asked)) as reading:
        assert await anext(reading) == []
        while not told:
            taking = asyncio.ensure_future(anext(reading))
            while not taking.done():
                if fleet.clock.sleepers:
                    fleet.clock.advance(ALIVE_EVERY)
                    passed += 1
                await asyncio.sleep(0)
            told = words(await taking)
    assert f"error: node n1: {SILENT}" in told
    assert passed >= MOST_WAITS


async def test_by_a_clients_id_lines_are_found_that_know_ours_alone(fleet: Fleet) -> None:
    settled = {"request_id": OURS, "client_request_id": "mine"}
    fleet.head.written += [line_of(GATEWAY, 7, "settled", **settled)]
    fleet.machines["n2"].written += [line_of(R2, 6, "broke", request_id=OURS)]
    for request in ("mine", OURS):
        told = await fleet.told(ALL._replace(ids=(request,)))
        assert told == ["n2: broke", "here: settled"]
    assert await fleet.told(ALL._replace(ids=("other",))) == []


async def test_followed_lines_wait_for_those_of_other_machines_that_were_written_before(
    fleet: Fleet,
) -> None:
    async with aclosing(Follower(fleet)) as follower:
        await follower.begin()
        fleet.head.comes.put_nowait(LoggedPart([line_of(HEAD, 12, "later")]))
        await until(fleet.head.comes.empty, "the head's to be taken")
        await asyncio.sleep(0)
        assert await follower.look() == []
        fleet.machines["n1"].comes.put_nowait(LoggedPart([line_of(R1, 11, "earlier")]))
        await until(fleet.machines["n1"].comes.empty, "the node's to be taken")
        await asyncio.sleep(0)
        assert await follower.look() == ["n1: earlier", "here: later"]


async def test_a_node_that_comes_back_is_read_on_from_where_it_was(fleet: Fleet) -> None:
    async with aclosing(Follower(fleet)) as follower:
        await follower.begin()
        n1 = fleet.machines["n1"]
        n1.comes.put_nowait(NodeUnreachable("it is gone"))
        n1.error = Unavailable("it is away")
        lost = await follower.until("error: node n1: it is away")
        assert lost == ["error: node n1: it is gone", "error: node n1: it is away"]
        assert await follower.look(2 * AGAIN_LOOKS) == []
        n1.error = None
        # One of the same moment as the last that was told.
        n1.written = [line_of(R1, 2, "two"), line_of(R1, 2, "too"), line_of(R1, 15, "meanwhile")]
        assert await follower.until("n1: meanwhile") == ["n1: too", "n1: meanwhile"]
    assert n1.asked[-1].tail == MOST_LINES


async def test_a_node_that_falls_silent_is_told_once_and_one_that_comes_is_read(
    fleet: Fleet,
) -> None:
    async with aclosing(Follower(fleet)) as follower:
        await follower.begin()
        fleet.note("n2", NodeState.SILENT)
        assert await follower.look(3) == ["error: node n2 is silent: its logs are not read"]
        fleet.machines["n3"] = LoggingMachine()
        fleet.note("n3", NodeState.READY)
        fleet.machines["n3"].comes.put_nowait(LoggedPart([line_of(R1, 3000, "new")]))
        assert await follower.until("n3: new") == ["n3: new"]


async def test_who_leaves_is_read_for_no_more_and_so_many_read_at_a_time(fleet: Fleet) -> None:
    followers = [Follower(fleet) for _ in range(MOST_READERS)]
    for each in followers:
        await each.begin()
    with pytest.raises(Unavailable, match="4 read all logs here already"):
        await fleet.told()
    for each in followers:
        await each.aclose()
    assert [each.reading for each in (fleet.head, *fleet.machines.values())] == [0, 0, 0]
    assert await fleet.told()
