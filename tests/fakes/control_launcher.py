"""Processes that exist only in the test, and a probe that says what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from penstock.control.errors import LaunchFailed


class FakeProcess:
    """Runs until it is ended; `terminate` ends it unless it is `stubborn`."""

    def __init__(self, pid: int, argv: Sequence[str]) -> None:
        self.pid = pid
        self.started_at = float(pid)
        self.argv = list(argv)
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

    def interrupt(self) -> None:
        self.signals.append("INT")
        if not self.stubborn:
            self.end(0)

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(-9)

    def kill_group(self) -> None:
        self.kill()

    def end(self, exit_code: int | None) -> None:
        self._exit_code = exit_code
        self._ended.set()


class FakeLauncher:
    """Remembers what was started; `log` is what each process leaves in its log."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.argv: list[str] = []
        self.log = ""
        self.refusal = ""  # why nothing can be started; empty: it can
        self._pids = count(100)

    async def start(
        self, argv: Sequence[str], *, log_path: Path, env: Mapping[str, str] | None = None
    ) -> FakeProcess:
        if self.refusal:
            raise LaunchFailed(self.refusal)
        self.argv = list(argv)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_text(self.log)
        process = FakeProcess(next(self._pids), argv)
        self.started.append(process)
        return process

    def find(self, words: Sequence[str]) -> list[FakeProcess]:
        text = " ".join(words)
        return [each for each in self.started if each.alive() and text in " ".join(each.argv)]

    def adopt(self, pid: int, started_at: float) -> FakeProcess | None:
        return next((each for each in self.started if each.alive() and each.pid == pid), None)


class FakeProbe:
    """Answers what `lives` says, but never at the addresses in `silent`."""

    def __init__(self) -> None:
        self.lives = True
        self.silent: set[str] = set()

    async def alive(self, address: str, *, tls: bool = False) -> bool:
        return self.lives and address not in self.silent
