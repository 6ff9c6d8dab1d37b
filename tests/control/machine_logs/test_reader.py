"""A machine's logs, read together from real files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.control import log_files
from penstock.control.errors import Unavailable
from penstock.control.machine_logs import backwards, reader
from penstock.control.machine_logs.following import CUT
from penstock.control.machine_logs.lines import micros
from penstock.control.machine_logs.reader import MOST_READERS, LocalLogs
from penstock.control.machine_logs.values import Author, LoggedPart, LogQuestion, Source
from penstock.control.outside.clock import SystemClock
from penstock.control.settings import LogRetention
from tests.fakes.waiting import until

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ALL = LogQuestion(tail=1000)
FOLLOW = LogQuestion(tail=1000, follow=True)


class Machine:
    """Logs of processes, and who reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = LocalLogs(self._sources, SystemClock())

    def _sources(self) -> Iterator[Source]:
        for path in sorted(self.folder.glob("*.log")):
            yield Source(Author("replica", path.stem), path)

    def write(self, name: str, *lines: str) -> None:
        with log_files.opened(self.folder / f"{name}.log") as log:
            log.write("".join(f"{line}\n" for line in lines).encode())

    async def told(self, asked: LogQuestion = ALL) -> list[str]:
        return messages([part async for part in self.logs.read(asked)])

    @staticmethod
    def line(second: float, message: str) -> str:
        when = (NOON + timedelta(seconds=second)).isoformat(timespec="milliseconds")
        time = when.replace("+00:00", "Z")
        return json.dumps({"time": time, "level": "info", "message": message})


def messages(parts: list[LoggedPart]) -> list[str]:
    return [
        f"{line.author.name}: {json.loads(line.text)['message']}"
        for part in parts
        for line in part.lines
    ]


async def until_told(parts: AsyncGenerator[LoggedPart, None], last: str) -> list[str]:
    """What comes until a message, which is the last of it."""
    found: list[LoggedPart] = []
    async with asyncio.timeout(60):
        async for part in parts:
            found.append(part)
            if last in messages(found):
                return messages(found)
    raise AssertionError(f"{last} never came: {messages(found)}")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def since(second: float) -> int:
    return micros(NOON + timedelta(seconds=second))


async def test_lines_of_all_processes_come_in_the_order_of_their_times(machine: Machine) -> None:
    machine.write("a", machine.line(1, "one"), machine.line(4, "four"))
    machine.write("b", machine.line(2, "two"), machine.line(3, "three"))
    assert await machine.told() == ["a: one", "b: two", "b: three", "a: four"]
    assert await machine.told(ALL._replace(since_us=since(3))) == ["b: three", "a: four"]
    assert await machine.told(ALL._replace(of="a")) == ["a: one", "a: four"]


async def test_of_many_the_last_are_told_and_that_there_are_more(machine: Machine) -> None:
    machine.write("a", machine.line(1, "one"), machine.line(2, "two"))
    parts = [part async for part in machine.logs.read(LogQuestion(tail=1))]
    assert messages(parts) == ["a: two"]
    assert (parts[-1].note, parts[-1].caught_up) == ("there are more lines before these", True)
    assert await machine.told(LogQuestion(tail=0)) == []


async def test_lines_that_tell_no_time_stay_behind_the_one_before_them(machine: Machine) -> None:
    machine.write("a", machine.line(1, "one"), "Traceback:", "  it broke", machine.line(3, "three"))
    machine.write("b", machine.line(2, "two"))
    expected = ["a: one", "a: Traceback:", "a:   it broke", "b: two", "a: three"]
    assert await machine.told() == expected
    assert await machine.told(ALL._replace(since_us=since(2))) == ["b: two", "a: three"]


async def test_a_log_without_any_time_is_told_at_the_time_of_its_file(machine: Machine) -> None:
    machine.write("a", "one", "two")
    assert await machine.told() == ["a: one", "a: two"]
    hour_ago = micros(datetime.now(UTC) - timedelta(hours=1))
    assert await machine.told(ALL._replace(since_us=hour_ago)) == ["a: one", "a: two"]


async def test_what_was_cut_off_is_told_as_far_back_as_is_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogRetention, "segment_bytes", 10)
    for second, message in enumerate(("one", "two", "three")):
        machine.write("a", machine.line(second, message))
        with log_files.opened(machine.folder / "a.log"):
            log_files.sweep(machine.folder, LogRetention(), datetime.now(UTC))
    machine.write("a", machine.line(9, "four"))
    assert await machine.told() == ["a: one", "a: two", "a: three", "a: four"]
    assert await machine.told(ALL._replace(since_us=since(2))) == ["a: three", "a: four"]


async def test_a_log_longer_than_a_read_is_told_whole(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backwards, "BLOCK", 500)
    lines = [machine.line(number, f"{number} {'x' * (number % 300)}") for number in range(900)]
    machine.write("a", *lines)
    told = await machine.told()
    assert told == [f"a: {json.loads(line)['message']}" for line in lines]


async def test_lines_that_name_a_request_are_found_wherever_they_stand(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backwards, "BLOCK", 200)
    lines = [machine.line(number, f"request-{number} and more") for number in range(100)]
    machine.write("a", *lines, "request-50 broke")
    asked = ALL._replace(ids=("request-50",))
    expected = ["a: request-50 and more", "a: request-50 broke"]
    assert await machine.told(asked) == expected
    assert await machine.told(asked._replace(since_us=since(40))) == expected
    assert await machine.told(asked._replace(since_us=since(60))) == ["a: request-50 broke"]


async def test_an_answer_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_BYTES", 10_000)
    machine.write("a", *(machine.line(number, "x" * 900) for number in range(100)))
    parts = [part async for part in machine.logs.read(ALL)]
    assert sum(len(line.text) for part in parts for line in part.lines) <= 10_000
    assert parts[-1].note == "there are more lines before these"


async def test_a_follower_is_told_each_line_once_also_of_a_process_that_comes(
    machine: Machine,
) -> None:
    machine.write("a", machine.line(1, "one"))
    async with aclosing(machine.logs.read(FOLLOW)) as parts:
        assert await until_told(parts, "a: one") == ["a: one"]
        machine.write("a", machine.line(2, "two"), "no time")
        assert await until_told(parts, "a: no time") == ["a: two", "a: no time"]
        machine.write("b", machine.line(3, "new"))
        assert await until_told(parts, "b: new") == ["b: new"]


async def test_a_log_that_nobody_writes_to_any_more_is_let_go_once_it_is_read_and_told_once(
    machine: Machine,
) -> None:
    path = machine.folder / "gone.log"
    machine.write("gone", machine.line(1, "one"))
    written = True
    logs = LocalLogs(
        lambda: [Source(Author("replica", "gone"), path, written=written)], SystemClock()
    )
    async with aclosing(logs.read(FOLLOW)) as parts:
        await until_told(parts, "gone: one")
        assert path in opened_files()
        machine.write("gone", machine.line(2, "last"))
        written = False
        assert await until_told(parts, "gone: last") == ["gone: last"]
        more = asyncio.ensure_future(until_told(parts, "gone: again"))
        await until(lambda: path not in opened_files(), "the log to be let go")
        written = True
        await until(lambda: path in opened_files(), "the log to be followed again")
        machine.write("gone", machine.line(3, "again"))
        assert await more == ["gone: again"]


def opened_files() -> set[Path]:
    """By this process."""
    found = set[Path]()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(each.readlink())
    return found


async def test_a_follower_of_a_request_is_told_nothing_else(machine: Machine) -> None:
    async with aclosing(machine.logs.read(FOLLOW._replace(ids=("request-1",)))) as parts:
        assert (await anext(parts)).caught_up
        machine.write("a", machine.line(1, "request-2"), machine.line(2, "request-1"))
        assert await until_told(parts, "a: request-1") == ["a: request-1"]


async def test_a_follower_is_told_where_lines_are_missing(machine: Machine) -> None:
    machine.write("a", machine.line(1, "one"))
    async with aclosing(machine.logs.read(FOLLOW)) as parts:
        await until_told(parts, "a: one")
        (machine.folder / "a.log").write_text("")  # as where the disk was full
        async with asyncio.timeout(60):
            notes = [(await anext(parts)).note for _ in range(2)]  # the last of before, and then
        assert notes == ["", CUT]


async def test_so_many_read_at_a_time_and_who_leaves_makes_room(machine: Machine) -> None:
    readers = [machine.logs.read(FOLLOW) for _ in range(MOST_READERS)]
    for each in readers:
        await anext(each)
    with pytest.raises(Unavailable, match="4 read the logs of this machine already"):
        await machine.told()
    await readers.pop().aclose()
    assert await machine.told() == []
    for each in readers:
        await each.aclose()


async def test_which_gateways_log_here_is_told_with_the_last_of_before(machine: Machine) -> None:
    path = machine.folder / "gateway-gw-1.log"
    logs = LocalLogs(lambda: [Source(Author("gateway", "gw-1"), path)], SystemClock())
    *_, last = [part async for part in logs.read(ALL)]
    assert last.gateways == ["gw-1"]
