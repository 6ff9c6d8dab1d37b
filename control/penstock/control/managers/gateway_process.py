"""The gateway process as the head sees it: command line, files, and the outside it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Process(Protocol):
    """A running process, ours by birth or by adoption."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def started_at(self) -> float:
        """Seconds from the machine's boot to its start: with the pid it names one process."""

    async def wait(self) -> int | None:
        """Returns at its end with the exit code (-signal if killed), None for an adopted one."""

    def terminate(self) -> None:
        """Asks it to stop."""

    def kill(self) -> None:
        """Ends it at once."""


class Launcher(Protocol):
    """Starts processes, and finds those that a former head started."""

    async def start(
        self, argv: Sequence[str], *, log_path: Path, env: Mapping[str, str] | None = None
    ) -> Process:
        """Starts a process whose output goes to the log; raises LaunchFailed."""

    def adopt(self, pid: int, started_at: float) -> Process | None:
        """The process of this pid and start time; None where it is gone."""


class LivenessProbe(Protocol):
    """Asks a gateway whether it lives."""

    async def alive(self, address: str) -> bool:
        """Whether /livez at this address answered 200 in time."""


@dataclass(frozen=True, slots=True)
class GatewayCommand:
    """How a local gateway is run."""

    id: str
    binary: Path
    listen: str  # host:port of the OpenAI API
    control: str  # host:port of the head's Routes service
    data_dir: Path
    threads: int | None = None
    log_level: str = "info"

    def argv(self) -> list[str]:
        """The command line."""
        argv = [str(self.binary), "--listen", self.listen, "--control", self.control]
        argv += ["--id", self.id, "--data-dir", str(self.data_dir), "--log-level", self.log_level]
        return argv if self.threads is None else [*argv, "--threads", str(self.threads)]

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return self.data_dir / "logs" / f"gateway-{self.id}.log"

    @property
    def pid_path(self) -> Path:
        """Where the head remembers the running process."""
        return self.data_dir / f"gateway-{self.id}.pid.json"


def remember(command: GatewayCommand, process: Process) -> None:
    """Writes down which process runs, so that the next head can adopt it."""
    record = {"pid": process.pid, "started_at": process.started_at, "argv": command.argv()}
    scratch = command.pid_path.with_suffix(".tmp")
    scratch.write_text(json.dumps(record))
    scratch.replace(command.pid_path)


def forget(command: GatewayCommand) -> None:
    """The process ended, and nobody need look for it."""
    command.pid_path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a former head wrote down."""

    pid: int
    started_at: float
    argv: list[str]


def remembered(command: GatewayCommand) -> Remembered | None:
    """The process that was running when the last head ended; None where there was none."""
    try:
        record = json.loads(command.pid_path.read_bytes())
        return Remembered(int(record["pid"]), float(record["started_at"]), list(record["argv"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
