"""Replicas' logs as heads read them: real files, the agent's real service, the head's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.control import log_files
from penstock.control.errors import Code, InvalidInput, NodeUnreachable, Unavailable
from penstock.control.machine_logs.following import MOST_PART
from penstock.control.machine_logs.lines import logged
from penstock.control.machine_logs.reader import LocalLogs
from penstock.control.machine_logs.sources import REPLICA_BEGINS, LogFolder, node_sources
from penstock.control.machine_logs.values import Author, LoggedPart, LogQuestion
from penstock.control.managers.fleet.replica_logs import LogPart, LogRequest
from penstock.control.node_agent import log_readers, replica_log
from penstock.control.node_agent.log_readers import MOST_READERS, LogReaders
from penstock.control.node_agent.log_reading import MOST_BACKLOG
from penstock.control.node_agent.state_files import StateFiles
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.log_client import GrpcAgentLogs
from penstock.control.rpc.node_agent_service import NodeAgentServer
from penstock.control.settings import LogRetention
from penstock.control.state.fleet.replica import ReplicaId
from tests.fakes.control_errors import raises_code

R1 = ReplicaId("r1")
ALL = LogRequest(1000)
FOLLOW = LogRequest(1000, follow=True)


@dataclass
class Machine:
    """A node agent's logs, and a head that reads them."""

    files: StateFiles
    server: NodeAgentServer
    here: set[str] = field(default_factory=set)

    def log(self, replica_id: str = "r1") -> Path:
        return self.files.log_path(replica_id)

    def start(self, *lines: str, replica_id: str = "r1") -> None:
        """A process of the replica begins, and writes."""
        self.here.add(replica_id)
        replica_log.begin(self.log(replica_id), replica_id, datetime.now(UTC))
        self.write(*lines, replica_id=replica_id)

    def write(self, *lines: str, replica_id: str = "r1") -> None:
        with log_files.opened(self.log(replica_id)) as log:
            log.write("".join(f"{line}\n" for line in lines).encode())

    def cut(self) -> None:
        """The log has grown too long."""
        with log_files.opened(self.log()):
            log_files.sweep(self.log().parent, LogRetention(), datetime.now(UTC))

    def read(
        self, asked: LogRequest = ALL, replica_id: str = "r1"
    ) -> AsyncGenerator[LogPart, None]:
        address = f"127.0.0.1:{self.server.port}"
        return GrpcAgentLogs(Dialer()).read(address, ReplicaId(replica_id), asked)

    async def told(self, asked: LogRequest = ALL, replica_id: str = "r1") -> list[str]:
        """All of an answer that ends, but for the agent's own first lines."""
        return lines_of([part async for part in self.read(asked, replica_id)])


def lines_of(parts: list[LogPart]) -> list[str]:
    text = "".join(
        part.lines.decode() + (f"({part.note})\n" if part.note else "") for part in parts
    )
    return [line for line in text.splitlines() if not line.startswith(REPLICA_BEGINS)]


async def until_told(parts: AsyncGenerator[LogPart, None], last: str) -> list[str]:
    """What comes until a line, which is the last of it."""
    found: list[LogPart] = []
    async with asyncio.timeout(60):
        async for part in parts:
            found.append(part)
            if last in lines_of(found):
                return lines_of(found)
    raise AssertionError(f"{last} never came: {lines_of(found)}")


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    server = NodeAgentServer("127.0.0.1", 0)
    machine = Machine(StateFiles(tmp_path), server)
    folder, clock, here = LogFolder(tmp_path / "logs"), SystemClock(), machine.here.__contains__
    local = LocalLogs(lambda: node_sources(folder, "n1", here, beside_head=True), clock)
    readers = LogReaders(machine.files.log_path, here, local, clock)
    nothing: Any = None
    await server.serve(nothing, nothing, nothing, readers, nothing)
    yield machine
    await server.stop()


async def test_what_it_wrote_since_its_last_start_is_told_and_before_on_demand(
    machine: Machine,
) -> None:
    for run in ("one", "two", "three"):
        machine.start(f"{run} a", f"{run} b")
    assert await machine.told() == ["three a", "three b"]
    assert await machine.told(LogRequest(1)) == ["three b"]
    assert await machine.told(LogRequest(9, previous=True)) == ["two a", "two b"]


async def test_a_run_is_whole_though_its_log_was_cut(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogRetention, "segment_bytes", 10)
    machine.start("one a")
    machine.start("two a")
    machine.cut()
    machine.write("two b")
    machine.cut()
    machine.write("two c")
    assert await machine.told() == ["two a", "two b", "two c"]
    assert await machine.told(LogRequest(9, previous=True)) == ["one a"]


async def test_the_log_of_a_replica_that_is_gone_is_told_as_long_as_it_is_kept(
    machine: Machine,
) -> None:
    machine.start("why it failed")
    machine.here.clear()
    assert await machine.told() == ["why it failed"]
    log_files.sweep(machine.log().parent, LogRetention(days=0), datetime.now(UTC))
    with raises_code(Code.UNKNOWN_REPLICA, match="no log of a replica 'r1' is kept"):
        await machine.told()


async def test_a_replica_without_a_log_is_told_from_none(machine: Machine) -> None:
    machine.here.add("r1")
    assert await machine.told() == ["(nothing that it wrote is kept)"]
    machine.start("first")
    with_previous = LogRequest(9, previous=True)
    assert await machine.told(with_previous) == [
        "(nothing that an earlier process of it wrote is kept)"
    ]
    with raises_code(Code.UNKNOWN_REPLICA, match="r2"):
        await machine.told(replica_id="r2")
    for wrong in ("../secret", "r1.log.x/../y"):
        with pytest.raises(InvalidInput, match="replica id"):
            await machine.told(replica_id=wrong)


@pytest.mark.parametrize("follow", [False, True])
async def test_a_log_of_another_process_is_nobodys(machine: Machine, *, follow: bool) -> None:
    machine.write("who asked for what", replica_id="gateway-gw-1")
    with raises_code(Code.UNKNOWN_REPLICA, match="no log of a replica 'gateway-gw-1' is kept"):
        await machine.told(LogRequest(9, follow=follow), replica_id="gateway-gw-1")


async def test_what_looks_like_a_secret_is_not_told(machine: Machine) -> None:
    machine.start("token hf_abcdefghijklmnopqrstuvwxyz refused", "Bearer abcdefghijklmnop")
    assert await machine.told() == ["token [secret] refused", "[secret]"]


async def test_an_answer_is_bounded_and_says_so(machine: Machine) -> None:
    machine.start(*(f"{number:06} {'x' * 992}" for number in range(1200)))
    first, *lines = await machine.told(LogRequest(10_000))
    assert first.startswith("(only the last 1,0")
    assert sum(len(line) + 1 for line in lines) <= MOST_BACKLOG
    assert lines[-1].startswith("001199 ")


async def test_a_line_that_never_ends_is_told_in_pieces(machine: Machine) -> None:
    machine.start("x" * (3 * MOST_PART))
    assert [len(line) for line in await machine.told()] == [3 * MOST_PART]
    async with aclosing(machine.read(FOLLOW)) as parts:
        await until_told(parts, "x" * (3 * MOST_PART))
        with machine.log().open("a") as log:
            log.write("y" * (2 * MOST_PART))
        begun = await anext(part.lines async for part in parts if part.lines)
        machine.write("", "end")  # only now it ends
        pieces = [*begun.decode().splitlines(), *await until_told(parts, "end")]
    assert "".join(pieces) == "y" * (2 * MOST_PART) + "end"


async def test_a_follower_is_told_each_line_once_through_cuts_and_new_starts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogRetention, "segment_bytes", 10)
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as parts:
        assert await until_told(parts, "one") == ["one"]
        machine.write("two")
        machine.cut()
        machine.write("three")
        assert await until_told(parts, "three") == ["two", "three"]
        machine.write("four")
        machine.start("five")
        assert await until_told(parts, "five") == ["four", "five"]
        machine.write("six")
        machine.cut()
        machine.write("seven")
        machine.cut()
        machine.write("eight")
        assert await until_told(parts, "eight") == ["six", "seven", "eight"]


async def test_a_half_line_is_told_once_it_is_whole(machine: Machine) -> None:
    machine.start("one")
    with machine.log().open("a") as log:
        log.write("tw")
        log.flush()
        async with aclosing(machine.read(FOLLOW)) as parts:
            assert await until_told(parts, "one") == ["one"]
            log.write("o\n")
            log.flush()
            assert await until_told(parts, "two") == ["two"]


async def test_a_follower_is_told_where_lines_are_missing(machine: Machine) -> None:
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as parts:
        await until_told(parts, "one")
        machine.log().write_text("two\n")  # as where the disk was full
        cut = "(lines are missing here: the log was cut, and what it held is gone)"
        assert await until_told(parts, "two") == [cut, "two"]


async def test_following_ends_with_the_replica_and_all_it_wrote(machine: Machine) -> None:
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as parts:
        await until_told(parts, "one")
        with machine.log().open("a") as log:
            log.write("last\nwords")
        machine.here.clear()
        rest = [part async for part in parts]
    assert lines_of(rest) == ["last", "words", "(the replica is stopped, its log ends here)"]


async def test_following_begins_before_the_first_start(machine: Machine) -> None:
    machine.here.add("r1")
    async with aclosing(machine.read(FOLLOW)) as parts:
        assert lines_of([await anext(parts)]) == ["(nothing that it wrote is kept)"]
        machine.start("one")
        assert await until_told(parts, "one") == ["one"]


async def test_what_is_over_cannot_be_followed(machine: Machine) -> None:
    with pytest.raises(InvalidInput, match="cannot be followed"):
        await machine.told(LogRequest(9, previous=True, follow=True))


async def test_so_many_read_at_a_time_and_who_leaves_makes_room(machine: Machine) -> None:
    machine.start("one")
    readers = [machine.read(FOLLOW) for _ in range(MOST_READERS)]
    for reader in readers:
        await anext(reader)
    with pytest.raises(Unavailable, match="16 logs of this node are read already"):
        await machine.told()
    await readers.pop().aclose()
    async with asyncio.timeout(60):
        while True:
            try:
                assert await machine.told() == ["one"]
                break
            except Unavailable:
                await asyncio.sleep(0)
    for reader in readers:
        await reader.aclose()


async def test_one_that_takes_nothing_holds_up_nobody(machine: Machine) -> None:
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as idle:
        await anext(idle)
        machine.write(*("x" * 1000 for _ in range(2_000)))
        assert len(await machine.told(LogRequest(100))) == 100
        machine.write("end")
        assert len(await until_told(idle, "end")) >= 2_001


async def test_a_long_following_ends_and_says_how_to_go_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_readers, "MOST_FOLLOWED", 1 << 20)
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as parts:
        await anext(parts)
        machine.write(*("x" * 1023 for _ in range(1024)))
        *_, last = [part async for part in parts]
    assert last.note == "1 MiB were read: ask again to follow it further"


async def test_an_agent_that_dies_or_hangs_is_told_of(machine: Machine) -> None:
    machine.start("one")
    async with aclosing(machine.read(FOLLOW)) as parts:
        await anext(parts)
        await machine.server.stop()
        with pytest.raises(NodeUnreachable, match=r"the node agent at 127\.0\.0\.1"):
            _ = [part async for part in parts]


async def test_an_agent_that_says_nothing_is_taken_for_gone(machine: Machine) -> None:
    machine.start("one")
    client = GrpcAgentLogs(Dialer(), timedelta(milliseconds=600))
    async with aclosing(client.read(f"127.0.0.1:{machine.server.port}", R1, FOLLOW)) as parts:
        with pytest.raises(NodeUnreachable, match=r"has said nothing for 0\.6 s"):
            _ = [part async for part in parts]


async def test_what_all_processes_of_the_machine_wrote_reaches_the_head_as_it_was_asked_for(
    machine: Machine,
) -> None:
    line = '{"time": "2026-01-31T12:00:00.000Z", "level": "warning", "message": "mine is abc"}'
    machine.write(line, "abcd is another", replica_id="node-agent")
    machine.write(line.replace("31T", "30T"), replica_id="warm-pool")
    machine.start("of another day")
    asked = LogQuestion(1_769_860_800_000_000, ("mine is abc",), 9)
    address = f"127.0.0.1:{machine.server.port}"
    parts = [part async for part in GrpcAgentLogs(Dialer()).read_all(address, asked)]
    told = logged(Author("node", "n1"), line, 1_769_860_800_000_000)
    assert parts == [LoggedPart([told], gateways=()), LoggedPart([], caught_up=True)]
