"""The process launcher, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.control.errors import LaunchFailed
from penstock.control.outside.processes import ProcessLauncher, RunningProcess
from tests.fakes.waiting import until

pytestmark = pytest.mark.processes

# Runs until it is killed; the alarm is for a test run that is itself killed.
IDLE = "import signal; signal.alarm(60); signal.pause()"
# Starts a child in its own group, prints the child's pid, and waits.
PARENT = (
    "import subprocess, sys;"
    f"c = subprocess.Popen([sys.executable, '-c', {IDLE!r}]);"
    f"print(c.pid, flush=True); {IDLE}"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "process.log"


@pytest.fixture
def stranger() -> Iterator[tuple[int, int]]:
    """A process that is not our child: its pid, and the pid of its parent, which never reaps."""
    script = (
        "import subprocess, sys;"
        f"c = subprocess.Popen([sys.executable, '-c', {IDLE!r}], start_new_session=True);"
        f"print(c.pid, flush=True); {IDLE}"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        yield pid, parent.pid
        for each in (pid, parent.pid):
            os.kill(each, signal.SIGKILL)


async def start(log: Path, script: str) -> RunningProcess:
    return await ProcessLauncher().start([sys.executable, "-c", script], log_path=log)


async def finish(process: RunningProcess) -> None:
    process.kill_group()
    await process.wait()


async def test_exit_code_and_output_of_a_child_are_known(log: Path) -> None:
    process = await start(log, "import sys; print('hello'); sys.exit(72)")
    assert await process.wait() == 72
    assert process.exit_code == 72
    assert log.read_text() == "hello\n"


async def test_a_killed_child_shows_its_signal(log: Path) -> None:
    process = await start(log, IDLE)
    os.kill(process.pid, signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL


async def test_an_ended_child_leaves_no_zombie(log: Path) -> None:
    process = await start(log, "pass")
    await process.wait()
    assert not psutil.pid_exists(process.pid)
    assert not process.alive()


async def test_terminate_reaches_the_process_and_not_its_child(log: Path) -> None:
    process = await start(log, PARENT)
    await until(lambda: log.read_text().strip().isdigit(), "the child's pid")
    child = psutil.Process(int(log.read_text()))
    process.terminate()
    assert await process.wait() == -signal.SIGTERM
    assert child.is_running()
    process.kill_group()
    await until(
        lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the child's end"
    )


@pytest.mark.parametrize("ask", [RunningProcess.terminate, RunningProcess.interrupt])
async def test_a_stopped_process_goes_on_to_hear_that_it_is_to_end(
    log: Path, ask: Callable[[RunningProcess], None]
) -> None:
    process = await start(
        log, f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); {IDLE}"
    )
    await until(lambda: psutil.Process(process.pid).status() == "sleeping", "it waits")
    os.kill(process.pid, signal.SIGSTOP)
    await until(lambda: psutil.Process(process.pid).status() == "stopped", "it is stopped")
    ask(process)
    assert await process.wait() in (-signal.SIGTERM, -signal.SIGINT)


async def test_a_process_leads_a_group_of_its_own_in_the_session_of_its_starter(log: Path) -> None:
    process = await start(log, IDLE)
    assert os.getpgid(process.pid) == process.pid
    assert os.getsid(process.pid) == os.getsid(0)
    await finish(process)


async def test_several_may_wait_and_one_that_gives_up_does_not_disturb(log: Path) -> None:
    process = await start(log, IDLE)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await process.wait()
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(process.wait()) for _ in range(2)]
        process.kill()
    assert [wait.result() for wait in waits] == [-signal.SIGKILL] * 2


async def test_signals_to_a_dead_process_are_no_error(log: Path) -> None:
    process = await start(log, "pass")
    await process.wait()
    process.terminate()
    process.kill()
    process.kill_group()


async def test_a_strangers_end_is_noticed_although_its_parent_never_reaps_it(
    stranger: tuple[int, int], log: Path
) -> None:
    pid, _ = stranger
    first = await start(log, "pass")
    await first.wait()
    adopted = ProcessLauncher().adopt(pid, started_at_of(pid))
    assert adopted is not None
    assert adopted.alive()
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(adopted.wait(), 5) is None
    assert not adopted.alive()


async def test_a_child_of_an_earlier_handle_can_be_adopted_and_is_reaped(log: Path) -> None:
    process = await start(log, IDLE)
    again = ProcessLauncher().adopt(process.pid, process.started_at)
    assert again is not None
    process.kill_group()
    codes = {await process.wait(), await again.wait()}
    assert -signal.SIGKILL in codes
    assert not psutil.pid_exists(process.pid)


async def test_a_pid_with_another_start_time_is_not_adopted(stranger: tuple[int, int]) -> None:
    pid, _ = stranger
    assert ProcessLauncher().adopt(pid, started_at_of(pid) - 1) is None


async def test_a_pid_that_nobody_has_is_not_adopted(log: Path) -> None:
    process = await start(log, "pass")
    await process.wait()
    assert ProcessLauncher().adopt(process.pid, process.started_at) is None


async def test_a_zombie_is_not_adopted(stranger: tuple[int, int]) -> None:
    pid, _ = stranger
    started_at = started_at_of(pid)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
    assert ProcessLauncher().adopt(pid, started_at) is None


async def test_a_process_is_found_by_words_of_its_command_line(log: Path) -> None:
    launcher = ProcessLauncher()
    argv = [sys.executable, "-c", IDLE, "--agent", f"mark-{os.getpid()}"]
    process = await launcher.start(argv, log_path=log)
    found = launcher.find(["--agent", f"mark-{os.getpid()}"])
    assert [each.pid for each in found] == [process.pid]
    assert launcher.find([f"mark-{os.getpid()}", "--agent"]) == []
    await finish(process)
    await found[0].wait()


async def test_a_program_that_does_not_exist_is_an_error_that_names_it(log: Path) -> None:
    with pytest.raises(LaunchFailed, match="no-such-program"):
        await ProcessLauncher().start(["/no-such-program"], log_path=log)


async def test_the_log_is_appended_to(log: Path) -> None:
    for word in ("one", "two"):
        await (await start(log, f"print({word!r})")).wait()
    assert log.read_text() == "one\ntwo\n"


async def test_a_process_runs_though_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    process = await start(tmp_path / "logs" / "process.log", "print('lost')")
    assert await process.wait() == 0


async def test_a_given_environment_is_added_to_ours(log: Path) -> None:
    launcher = ProcessLauncher()
    process = await launcher.start(["/usr/bin/env"], log_path=log, env={"COLOUR": "blue"})
    await process.wait()
    assert {"COLOUR=blue", f"PATH={os.environ['PATH']}"} <= set(log.read_text().splitlines())


def started_at_of(pid: int) -> float:
    """As the launcher measures it, read independently of it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


async def test_processes_are_found_by_words_of_their_command_line(log: Path) -> None:
    argv = [sys.executable, "-c", IDLE, "--id", "found-by", "its-words"]
    process = await ProcessLauncher().start(argv, log_path=log)
    (found,) = ProcessLauncher().find(["--id", "found-by"])
    assert found.pid == process.pid
    assert ProcessLauncher().find(["found-by", "--id"]) == []
    await finish(process)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of somebody else")
def test_a_process_of_another_user_is_never_taken_for_ours() -> None:
    words = ["--id", "somebody", "elses"]
    argv = ["/bin/sh", "-c", "read line; exit", *words]
    with subprocess.Popen(argv, user=65534, start_new_session=True, stdin=subprocess.PIPE) as other:
        try:
            assert ProcessLauncher().find(words) == []
        finally:
            other.kill()


def test_a_process_that_only_repeats_the_words_of_another_is_not_found() -> None:
    words = ["--id", "a", "wrapper's-child"]
    with subprocess.Popen([sys.executable, "-c", IDLE, *words]) as child:
        try:
            assert ProcessLauncher().find(words) == []
        finally:
            child.kill()
