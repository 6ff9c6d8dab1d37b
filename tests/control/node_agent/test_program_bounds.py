"""Real processes of router programs that loop, or are stopped: their agent sees it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.node_agent.program_health import ProgramBounds, unwritable
from penstock.control.node_agent.program_life import ProgramHome, ProgramNeeds
from penstock.control.node_agent.program_texts import ProgramTexts
from penstock.control.node_agent.programs import RouterPrograms
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.processes import ProcessLauncher, cpu_seconds
from penstock.control.router.program import digest_of
from penstock.v1.nodes_pb2 import HeartbeatReply, ProgramStatus, RouterProgram
from tests.fakes.waiting import until

pytestmark = pytest.mark.processes

TEXT = "async def route(request, engines, stats): ...\n"
# A thread of it: the event loop goes on, and the program answers.
LOOPS = f"""import threading
def loop():
    while True: pass
threading.Thread(target=loop, daemon=True).start()
{TEXT}"""


class Source:
    """A head with that one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def fetch_program(self, _: str) -> bytes:
        return self._text.encode()


@asynccontextmanager
async def program(folder: Path, text: str, bounds: ProgramBounds) -> AsyncIterator[RouterPrograms]:
    """A node that runs it, within these bounds."""
    home = ProgramHome(folder / "programs", folder / "logs")
    texts = ProgramTexts(folder / "texts", Source(text))
    launcher, clock = ProcessLauncher(), SystemClock()
    programs = RouterPrograms(
        ProgramNeeds(home, texts, launcher, clock, lambda: None, cpu_seconds, bounds)
    )
    running = asyncio.ensure_future(programs.run())
    wanted = RouterProgram(deployment_uid="u1", deployment="chat", digest=digest_of(text))
    programs.learn(HeartbeatReply(programs=[wanted]))
    await until(programs.statuses, "a status")
    yield programs
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def status_of(programs: RouterPrograms) -> ProgramStatus:
    (status,) = programs.statuses()
    return status


async def test_one_that_loops_in_a_thread_is_ended_and_told_of(tmp_path: Path) -> None:
    bounds = ProgramBounds(cores=0.05, window=timedelta(seconds=2), pause=timedelta(hours=1))
    async with program(tmp_path, LOOPS, bounds) as programs:
        await until(lambda: status_of(programs).restarts == 1, "its end")
        assert " cores for " in status_of(programs).last_error
        assert not status_of(programs).running


async def test_one_that_is_stopped_is_started_again(tmp_path: Path) -> None:
    bounds = ProgramBounds(silence=timedelta(seconds=3))
    async with program(tmp_path, TEXT, bounds) as programs:
        await until(lambda: status_of(programs).running, "it runs")
        pid = json.loads((tmp_path / "programs" / "u1.json").read_text())["pid"]
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: status_of(programs).restarts == 1, "it was seen")
        await until(lambda: status_of(programs).running, "it runs again")
        assert json.loads((tmp_path / "programs" / "u1.json").read_text())["pid"] != pid


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert unwritable(tmp_path) == ""
    assert unwritable(tmp_path, tmp_path / "gone").endswith(
        "gone cannot be written: No such file or directory"
    )
    assert not list(tmp_path.glob("tmp*")), "nothing is left there"
