"""The gateway process as the head sees it: command line, files, and the outside it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Process(Protocol):
    """A running process, ours by birth or by adoption."""

    @property
    def pid(self) -> int:
        """Its process id."""

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

    def find(self, words: Sequence[str]) -> Sequence[Process]:
        """Every process of ours whose command line has these words in a row."""

    def find_pids(self, words: Sequence[str]) -> Sequence[int]:
        """The pids of `find`."""


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
        argv += [*self.mark, "--log-level", self.log_level]
        return argv if self.threads is None else [*argv, "--threads", str(self.threads)]

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return self.data_dir / "logs" / f"gateway-{self.id}.log"

    @property
    def mark(self) -> list[str]:
        """Its words of `gateway_mark`."""
        return gateway_mark(self.id, self.data_dir)


def gateway_mark(gateway_id: str, data_dir: Path) -> list[str]:
    """Words in a row that only the command line of this gateway has: how it is found again."""
    return ["--id", gateway_id, "--data-dir", str(data_dir)]
