"""The processes of router programs on a node, without a process: what is started, ended, told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.errors import NotFound, Unavailable
from penstock.control.node_agent.program_health import ProgramBounds
from penstock.control.node_agent.program_life import ProgramHome, ProgramNeeds, last_words
from penstock.control.node_agent.program_texts import ProgramTexts
from penstock.control.node_agent.programs import RouterPrograms
from penstock.control.router.program import digest_of
from penstock.v1.nodes_pb2 import HeartbeatReply, ProgramStatus, RouterProgram
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher, FakeProcess
from tests.fakes.waiting import until

BOUNDS = ProgramBounds(
    timedelta(seconds=2), window=timedelta(seconds=3), pause=timedelta(seconds=4)
)
TEXT = "async def route(request, engines, stats): ..."
SHIPPED = RouterProgram(deployment_uid="u1", deployment="chat", digest="d1", name="data_parallel")
FILE = RouterProgram(deployment_uid="u1", deployment="chat", digest=digest_of(TEXT))


class Source:
    """A head with that one text."""

    def __init__(self) -> None:
        self.text = TEXT.encode()
        self.asked = 0
        self.error: Exception | None = None

    async def fetch_program(self, digest: str) -> bytes:
        self.asked += 1
        if self.error:
            raise self.error
        return self.text


class Node:
    """A node's programs, over processes that do nothing; time passes by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = FakeLauncher()
        self.source = Source()
        self.clock = ManualClock()
        home = ProgramHome(folder / "programs", folder / "logs", ("ours.routing",))
        texts = ProgramTexts(folder / "texts", self.source)
        self.cores = 0.0  # that each process takes
        needs = ProgramNeeds(home, texts, self.launcher, self.clock, lambda: None, self.cpu, BOUNDS)
        self.programs = RouterPrograms(needs)
        self.stopped: list[FakeProcess] = []

    async def pass_time(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self.clock.advance(timedelta(milliseconds=20))
            for process in self.launcher.started:
                if process.alive() and process not in self.stopped and self.draft(process).exists():
                    os.utime(self.draft(process))

    def cpu(self, _: int) -> float:
        return self.cores * self.clock.monotonic()

    def wants(self, *programs: RouterProgram) -> None:
        self.programs.learn(HeartbeatReply(programs=programs))

    async def started(self, count: int) -> FakeProcess:
        """The process that was started as the so-and-so-many-th."""
        await until(lambda: len(self.launcher.started) >= count, f"{count} starts")
        return self.launcher.started[count - 1]

    @property
    def file(self) -> Path:
        return self.folder / "programs" / "u1.json"

    def answers(self, process: FakeProcess, *digests: str) -> None:
        """That process says that it can be asked."""
        told = json.dumps({"pid": process.pid, "digests": digests})
        self.draft(process).write_text(told)

    def draft(self, process: FakeProcess) -> Path:
        """Where that process says it."""
        return Path(process.argv[process.argv.index("--announce") + 1])

    async def tells(self, what: Callable[[ProgramStatus], bool]) -> ProgramStatus:
        def found() -> ProgramStatus | None:
            return next((each for each in self.programs.statuses() if what(each)), None)

        return await until(found, "a status")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path)
    tasks = [asyncio.ensure_future(each) for each in (node.programs.run(), node.pass_time())]
    await until((tmp_path / "programs").exists, "the folder")
    yield node
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_that_ships_is_started_and_told_of_once_it_answers(node: Node) -> None:
    node.wants(SHIPPED)
    process = await node.started(1)
    words = process.argv
    assert words[:4] == [sys.executable, "-P", "-m", "penstock.control.router"]
    assert "--text" not in words
    assert not node.programs.statuses()[0].running
    node.answers(process, "d1", "d2")
    status = await node.tells(lambda it: it.running)
    assert (status.deployment_uid, status.digest, status.restarts) == ("u1", "d1", 0)
    assert json.loads(node.file.read_text())["digests"] == ["d1", "d2"]
    assert node.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("digests", [7, None, {"d1": 1}, [["d1"], "d1"]])
async def test_what_a_process_says_of_itself_is_foreign(node: Node, digests: object) -> None:
    node.wants(SHIPPED)
    process = await node.started(1)
    told = Path(process.argv[process.argv.index("--announce") + 1])
    told.write_text("[" * 60_000)
    await node.clock.sleep(timedelta(seconds=1))
    told.write_text(json.dumps({"pid": process.pid, "digests": digests}))
    await until(node.file.exists, "what gateways read")
    assert node.programs.statuses()[0].running == isinstance(digests, list)


async def test_another_one_that_ships_needs_no_other_process(node: Node) -> None:
    node.wants(SHIPPED)
    node.answers(await node.started(1), "d1", "d2")
    await node.tells(lambda it: it.running)
    node.wants(RouterProgram(deployment_uid="u1", deployment="chat", digest="d2", name="other"))
    await node.tells(lambda it: it.running and it.digest == "d2")
    assert len(node.launcher.started) == 1


async def test_a_text_is_fetched_once_checked_and_run(node: Node) -> None:
    node.wants(FILE)
    first = await node.started(1)
    text = Path(first.argv[first.argv.index("--text") + 1])
    assert text.read_text() == TEXT
    assert first.argv[-2:] == ["--digest", FILE.digest]
    first.end(1)
    await node.started(2)
    assert node.source.asked == 1


async def test_what_is_another_text_than_its_digest_says_is_not_run(node: Node) -> None:
    node.source.text = b"another"
    node.wants(FILE)
    status = await node.tells(lambda it: bool(it.last_error))
    assert "another text" in status.last_error
    assert not node.launcher.started
    node.source.text = TEXT.encode()
    await node.started(1)


@pytest.mark.parametrize("error", [NotFound("nobody has it"), Unavailable("the head is away")])
async def test_a_text_that_is_not_to_be_had_is_asked_for_again(
    node: Node, error: Exception
) -> None:
    node.source.error = error
    node.wants(FILE)
    status = await node.tells(lambda it: bool(it.last_error))
    assert status.last_error == f"its text is not to be had: {error}"
    node.source.error = None
    await node.started(1)


async def test_the_process_before_goes_once_the_next_one_answers(node: Node) -> None:
    node.wants(SHIPPED)
    old = await node.started(1)
    node.answers(old, "d1")
    await node.tells(lambda it: it.running)
    node.wants(FILE)
    new = await node.started(2)
    assert old.alive()
    node.answers(new, FILE.digest)
    await old.wait()
    assert old.signals[0] == "TERM"
    await node.tells(lambda it: it.running and it.digest == FILE.digest)
    assert json.loads(node.file.read_text())["pid"] == new.pid


async def test_one_that_never_answered_goes_at_once_when_another_is_wanted(node: Node) -> None:
    node.wants(SHIPPED)
    old = await node.started(1)
    node.wants(FILE)
    await old.wait()
    assert (await node.started(2)).alive()


async def test_one_that_does_not_end_is_killed(node: Node) -> None:
    node.wants(SHIPPED)
    process = await node.started(1)
    process.stubborn = True
    node.answers(process, "d1")
    await node.tells(lambda it: it.running)
    node.wants()
    await process.wait()
    assert process.signals[:2] == ["TERM", "KILL"]
    await until(lambda: not node.file.exists(), "its file gone")
    assert not node.programs.statuses()


async def test_one_that_ends_is_started_again_and_why_is_told(node: Node) -> None:
    node.launcher.log = "router: error: SyntaxError: invalid syntax (line 1)\n"
    node.wants(FILE)
    (await node.started(1)).end(1)
    status = await node.tells(lambda it: it.restarts == 1)
    assert status.last_error == "SyntaxError: invalid syntax (line 1)"
    again = await node.started(2)
    node.answers(again, FILE.digest)
    assert (await node.tells(lambda it: it.running)).last_error == ""


async def test_one_that_does_not_start_in_time_is_killed(node: Node) -> None:
    node.wants(SHIPPED)
    process = await node.started(1)
    await process.wait()
    assert process.signals[0] == "KILL"


async def test_one_that_is_stopped_is_ended_and_started_again(node: Node) -> None:
    node.wants(SHIPPED)
    first = await node.started(1)
    node.answers(first, "d1")
    await node.tells(lambda it: it.running)
    await node.clock.sleep(timedelta(seconds=5))
    assert first.alive(), "it is heard"
    node.stopped.append(first)
    status = await node.tells(lambda it: it.restarts == 1)
    assert re.match(r"it was not heard for [23] s: it was stopped", status.last_error)
    assert first.signals[0] == "KILL"
    node.answers(await node.started(2), "d1")
    assert (await node.tells(lambda it: it.running)).last_error == ""


async def test_one_that_takes_the_machine_is_ended_and_rests(node: Node) -> None:
    node.cores = 0.8
    node.wants(SHIPPED)
    first = await node.started(1)
    node.answers(first, "d1")
    await node.tells(lambda it: it.running)
    await node.clock.sleep(timedelta(seconds=7))
    assert first.alive()
    node.cores = 1.5
    status = await node.tells(lambda it: it.restarts == 1)
    ended = node.clock.monotonic()
    assert re.fullmatch(r"it took \d\.\d\d cores for \d s, 0\.9 at most", status.last_error)
    await node.started(2)
    assert node.clock.monotonic() - ended > 3


async def test_one_that_could_say_nothing_is_told_of_with_why(tmp_path: Path) -> None:
    (tmp_path / "programs").write_text("no folder")
    node = Node(tmp_path)
    tasks = [asyncio.ensure_future(each) for each in (node.programs.run(), node.pass_time())]
    node.wants(SHIPPED)
    (await node.started(1)).end(1)
    said = (await node.tells(lambda it: bool(it.last_error))).last_error
    assert said == f"exit code 1: {tmp_path}/programs cannot be written: Not a directory"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_module_runs_only_where_the_node_lists_it(node: Node) -> None:
    node.wants(RouterProgram(deployment_uid="u1", deployment="chat", digest="m", module="os"))
    status = await node.tells(lambda it: bool(it.last_error))
    assert status.last_error == "module os is none of this node's --program-modules"
    ours = RouterProgram(deployment_uid="u1", deployment="chat", digest="n", module="ours.routing")
    node.wants(ours)
    assert (await node.started(1)).argv[-2:] == ["--module", "ours.routing"]


async def test_a_text_of_another_penstock_is_said_to_be_one(node: Node) -> None:
    node.wants(SHIPPED)
    node.answers(await node.started(1), "d7")
    assert "update it" in (await node.tells(lambda it: bool(it.last_error))).last_error


async def test_names_that_are_paths_are_not_run(node: Node) -> None:
    node.wants(RouterProgram(deployment_uid="../u", deployment="chat", digest="d", name="n"), FILE)
    await node.started(1)
    assert [each.deployment_uid for each in node.programs.statuses()] == ["u1"]


async def test_all_end_with_the_agent_and_what_one_before_left_is_gone(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "old.json").write_text("{}")
    node = Node(tmp_path)
    task = asyncio.ensure_future(node.programs.run())
    node.wants(SHIPPED)
    process = await node.started(1)
    node.answers(process, "d1")
    assert not (tmp_path / "programs" / "old.json").exists()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not process.alive()
    assert not node.file.exists()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], ""),
        (["a", "router: error: b", "c"], "b"),
        (
            ["Timeout (0:00:02)!", "Thread 1:", 'File "<program.py>", line 3 in route', "x"],
            'it did not yield for two seconds: File "<program.py>", line 3 in route',
        ),
        (["a", "b"], "b"),
    ],
)
def test_its_last_words_say_why_it_ended(lines: list[str], said: str) -> None:
    assert last_words(lines) == said
