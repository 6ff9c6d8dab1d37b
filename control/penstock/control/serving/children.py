"""The head and the node agent as children of `penstock serve`: started, and started again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from penstock.control import log_files
from penstock.control.errors import CannotStart
from penstock.control.node_agent.restart_policy import describe
from penstock.control.serving.wish import Wish, reachable

FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(seconds=5)
# One that ran for so long did not end because of how it was started.
STABLE_AFTER = timedelta(seconds=10)
# Words of a child's command line that tell whose it is: see `leftover_mark`.
PARENT_FLAG = "--with-parent"


class Process(Protocol):
    """A running process."""

    @property
    def pid(self) -> int:
        """Its process id."""

    async def wait(self) -> int | None:
        """Returns at its end with the exit code."""

    def terminate(self) -> None:
        """SIGTERM."""


class Launcher(Protocol):
    """Starts processes."""

    async def start(self, argv: Sequence[str], *, log_path: Path) -> Process:
        """Raises `LaunchFailed`."""


class Child:
    """One process that is to run as long as `penstock serve` does."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        log_path: Path,
        launcher: Launcher,
        tell: Callable[[str], None],
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._argv = argv
        self._launcher = launcher
        self._tell = tell
        self._process: Process | None = None
        self._wanted = asyncio.Event()
        self._proven = False

    @property
    def pid(self) -> int:
        """Of the running process; 0 if there is none."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Its time has come; until then `keep_running` waits."""
        self._wanted.set()

    def proven(self) -> None:
        """It was seen working: from now on its end is an accident, and it is started again."""
        self._proven = True

    async def keep_running(self) -> None:
        """Runs until cancelled. Raises `CannotStart` if the process ends before it has worked."""
        await self._wanted.wait()
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            log_files.begin(self.log_path)
            began = loop.time()
            self._process = await self._launcher.start(self._argv, log_path=self.log_path)
            exit_code = await self._process.wait()
            self._process = None
            if not self._proven:
                raise CannotStart(self._last_words(exit_code))
            if loop.time() - began > STABLE_AFTER.total_seconds():
                pause = FIRST_PAUSE
            self._tell(f"the {self.name} {describe(exit_code)}{self._cause()}: started again")
            await asyncio.sleep(pause.total_seconds())
            pause = min(pause * 2, LONGEST_PAUSE)

    async def stop(self, within: timedelta) -> None:
        """Asks the process to stop; returns when it has, or when the time is over."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(max(0.0, within.total_seconds())):
                await process.wait()
        except TimeoutError:
            self._tell(f"the {self.name} did not stop in time")

    def _last_words(self, exit_code: int | None) -> str:
        ended = f"the {self.name} {describe(exit_code)} while it started; see {self.log_path}"
        return self._last_error() or ended

    def _last_error(self) -> str:
        for line in reversed(log_files.tail(self.log_path, 100)):
            if ": error: " in line and not line.startswith("{"):
                return line.partition(": error: ")[2]
        return ""

    def _cause(self) -> str:
        """What it said last; on a full disk it could say nothing."""
        if log_files.no_room(self.log_path):
            return f", the disk of {self.log_path.parent} is full"
        said = self._last_error()
        return f" ({said})" if said else ""


def head_command(wish: Wish) -> list[str]:
    """How the head is started."""
    command = [*_begin("head", wish), "--gateway", wish.gateway, "--admin", wish.admin]
    command += ["--rpc", wish.rpc]
    if wish.gateway_threads is not None:
        command += ["--gateway-threads", str(wish.gateway_threads)]
    if wish.gateway_binary is not None:
        command += ["--gateway-binary", str(wish.gateway_binary)]
    return command


def node_command(wish: Wish) -> list[str]:
    """How the node agent is started."""
    head = reachable(wish.rpc, flag="--rpc")
    return [*_begin("node", wish), "--head", head, "--node-id", wish.node_id]


def leftover_mark(data_dir: Path) -> list[str]:
    """Words in a row that only the children of a serve on this data directory have."""
    return ["--data-dir", str(data_dir), PARENT_FLAG]


def _begin(role: str, wish: Wish) -> list[str]:
    command = [sys.executable, "-m", "penstock.control.main", role]
    command += [*leftover_mark(wish.data_dir), str(os.getpid())]
    return [*command, "--log-level", wish.log_level]
