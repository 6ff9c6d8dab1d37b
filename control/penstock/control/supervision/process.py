"""Processes as those who supervise them see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Process(Protocol):
    """A process that leads its own group, ours by birth or by adoption."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def started_at(self) -> float:
        """Seconds from the machine's boot to its start: with the pid, its name for good."""

    @property
    def argv(self) -> Sequence[str]:
        """Its command line; empty once it has ended."""

    def alive(self) -> bool:
        """Whether it still runs."""

    async def wait(self) -> int | None:
        """Returns at its end with the exit code (-signal if killed), None for an adopted one."""

    def terminate(self) -> None:
        """SIGTERM to the process alone. Asking the dead does nothing."""

    def interrupt(self) -> None:
        """SIGINT to the process alone."""

    def kill(self) -> None:
        """SIGKILL to the process alone."""

    def kill_group(self) -> None:
        """SIGKILL to it and all it started, also when it is dead itself and they are not."""


class Launcher(Protocol):
    """Starts processes, and finds those that an earlier life of ours started."""

    async def start(
        self, argv: Sequence[str], *, log_path: Path, env: Mapping[str, str] | None = None
    ) -> Process:
        """Starts a process whose output goes to the log, or nowhere where that cannot be written;
        `env` is added to our environment. Raises LaunchFailed."""

    def find(self, words: Sequence[str]) -> Sequence[Process]:
        """Every process of ours whose command line has these words in a row."""

    def adopt(self, pid: int, started_at: float) -> Process | None:
        """The process of that pid and start time; None if it no longer runs."""
