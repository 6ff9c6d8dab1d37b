"""Real processes: started in groups of their own, or adopted after a restart of their supervisor.

A process is named by its pid *and* its start time, so that a pid that was given to somebody else
is never taken for ours. The kernel tells of the end through a pidfd, which works for children and
strangers alike, and children are reaped in the same moment: nothing here leaves a zombie.

One event loop, the one that started or adopted the process, owns it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from penstock.control.errors import LaunchFailed
from penstock.control.log_files import opened

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat, counted from the one after the command's name.
STATE_FIELD = 0
START_FIELD = 19
DEAD_STATES = ("Z", "X")


class RunningProcess:
    """A process that leads its own group, and the knowledge of its end.

    `started_at` is seconds since the machine booted: with the pid it names one process for good,
    and setting the machine's clock does not move it.
    """

    def __init__(self, pid: int, started_at: float, pidfd: int) -> None:
        self.pid = pid
        self.started_at = started_at
        self._pidfd = pidfd
        self._ended = asyncio.Event()
        self._exit_code: int | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pidfd, self._on_end)

    @property
    def argv(self) -> list[str]:
        """Its command line; empty once it has ended."""
        with suppress(psutil.Error):
            return psutil.Process(self.pid).cmdline()
        return []

    @property
    def exit_code(self) -> int | None:
        """What it exited with, -signal if killed; None while it runs and for ends of strangers."""
        return self._exit_code

    def alive(self) -> bool:
        """Whether it still runs: a zombie does not."""
        return not self._ended.is_set() and start_time(self.pid) == self.started_at

    async def wait(self) -> int | None:
        """Returns at its end with `exit_code`, which is None if it was not our child."""
        await self._ended.wait()
        return self._exit_code

    def terminate(self) -> None:
        """Asks the process, not its group, to stop. Asking the dead does nothing."""
        self._ask(signal.SIGTERM)

    def interrupt(self) -> None:
        """Asks the process, not its group, to stop with all that it has started."""
        self._ask(signal.SIGINT)

    def kill(self) -> None:
        """Ends the process at once, and leaves its group alone."""
        self._signal(signal.SIGKILL)

    def kill_group(self) -> None:
        """Ends the process and all it started, also when it is dead itself and they are not."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _ask(self, number: signal.Signals) -> None:
        """One that was stopped goes on, or it would not hear of it."""
        self._signal(number)
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
        self._ended.set()


R = TypeVar("R", bound=RunningProcess)


class ProcessLauncher:
    """Starts processes, and finds again those that an earlier life of ours started."""

    async def start(
        self, argv: Sequence[str], *, log_path: Path, env: Mapping[str, str] | None = None
    ) -> RunningProcess:
        """Starts `argv` in its own process group, stdout and stderr appended to `log_path`, or
        dropped where that cannot be written.

        `env` is added to our environment. Raises `LaunchFailed` if the program cannot be opened.
        """
        try:
            pid = _spawn(argv, log_path, env)
        except OSError as error:
            raise LaunchFailed(f"cannot start {argv[0]}: {error}") from error
        started_at = start_time(pid, even_dead=True)
        if started_at is None:
            raise LaunchFailed(f"process {pid} of {argv[0]} vanished while it started")
        return RunningProcess(pid, started_at, os.pidfd_open(pid))

    def find(self, words: Sequence[str]) -> list[RunningProcess]:
        """Every process that a launcher of ours may have started with these words in a row."""
        found = []
        for pid in _pids_of(words):
            started_at = start_time(pid)
            if started_at is not None and (process := self.adopt(pid, started_at)):
                found.append(process)
        return found

    def adopt(self, pid: int, started_at: float) -> RunningProcess | None:
        """The process of that pid and start time, child or not; None if it no longer runs."""
        return adopted(RunningProcess, pid, started_at)


def adopted(kind: type[R], pid: int, started_at: float) -> R | None:
    """As `ProcessLauncher.adopt`, of that kind."""
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return None
    # Read after the pidfd is open: the two are of one process, or the times differ.
    if start_time(pid) != started_at:
        os.close(pidfd)
        return None
    return kind(pid, started_at, pidfd)


def _spawn(argv: Sequence[str], log_path: Path, env: Mapping[str, str] | None) -> int:
    """Starts a program as leader of a new process group; returns its pid as soon as it exists.

    Not of a new session: Linux weighs sessions against each other (autogroup), and was seen to let
    a gateway wait for 0.7 s for the replicas in another.
    """
    with opened(log_path) as log:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
            env={**os.environ, **(env or {})},
        )
    # The pidfd tells of the end; Popen is to forget the child instead of warning about it.
    child.returncode = 0
    return child.pid


def _pids_of(words: Sequence[str]) -> list[int]:
    """The pids of what may be ours and has these words in a row in its command line."""
    wanted = list(words)
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = list(process.info["cmdline"] or ())
        if any(line[at : at + len(wanted)] == wanted for at in range(len(line))):
            found.append(process.pid)
    return [pid for pid in found if _may_be_ours(pid)]


def _may_be_ours(pid: int) -> bool:
    """Whether it is of our user and leads a group, as all that we start: not one who borrows our
    words, nor a child of ours that repeats them."""
    try:
        return psutil.Process(pid).uids().real == os.getuid() and os.getpgid(pid) == pid
    except (psutil.Error, OSError):
        return False


def cpu_seconds(pid: int) -> float:
    """That a process and its threads have taken; 0 where it does not run."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def start_time(pid: int, *, even_dead: bool = False) -> float | None:
    """Seconds from boot to the start of the process; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[STATE_FIELD] in DEAD_STATES and not even_dead:
        return None
    return int(fields[START_FIELD]) / TICKS_PER_SECOND
