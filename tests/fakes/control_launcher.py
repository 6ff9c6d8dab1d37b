"""Processes that exist only in the test, and a probe that says what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path


class FakeProcess:
    """Runs until it is ended; `terminate` ends it unless it is `stubborn`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.started_at = pid / 100
        self.stubborn = False
        self.signals: list[str] = []
        self._ended = asyncio.Event()
        self._exit_code: int | None = None

    async def wait(self) -> int | None:
        await self._ended.wait()
        return self._exit_code

    def alive(self) -> bool:
        return not self._ended.is_set()

    def terminate(self) -> None:
        self.signals.append("TERM")
        if not self.stubborn:
            self.end(0)

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(-9)

    def end(self, exit_code: int | None) -> None:
        self._exit_code = exit_code
        self._ended.set()


class FakeLauncher:
    """Remembers what was started; `log` is what each process leaves in its log."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.argv: list[str] = []
        self.log = ""
        self._pids = count(100)

    async def start(
        self, argv: Sequence[str], *, log_path: Path, env: Mapping[str, str] | None = None
    ) -> FakeProcess:
        self.argv = list(argv)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_text(self.log)
        process = FakeProcess(next(self._pids))
        self.started.append(process)
        return process

    def adopt(self, pid: int, started_at: float) -> FakeProcess | None:
        for process in self.started:
            if (process.pid, process.started_at) == (pid, started_at) and process.alive():
                return process
        return None


class FakeProbe:
    """Answers what `lives` says."""

    def __init__(self) -> None:
        self.lives = True

    async def alive(self, address: str) -> bool:
        return self.lives
