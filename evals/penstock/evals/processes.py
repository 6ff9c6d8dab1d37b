"""Child processes that end with the block that needs them."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from penstock.evals.errors import EvalError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Child:
    """A process started by `running`, and the file with everything that it prints."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, probe: Callable[[], T | None], *, within: float, what: str) -> T:
        """The first true answer of `probe`, asked until `within` seconds have passed.

        Raises `EvalError`, with the end of the log, when the process ends or the time is over.
        """
        deadline = time.monotonic() + within
        while True:
            if answer := probe():
                return answer
            if self.process.poll() is not None:
                raise EvalError(f"{self.name} ended with {self.process.returncode}: {self.tail()}")
            if time.monotonic() > deadline:
                raise EvalError(f"{self.name}: not within {within:g} s: {what}: {self.tail()}")
            time.sleep(0.02)

    def tail(self) -> str:
        """The last lines that it printed, as one line."""
        lines = self.log.read_text(errors="replace").split("\n")
        return " | ".join(line for line in lines[-12:] if line)[-1500:] or "(it printed nothing)"


@contextlib.contextmanager
def running(
    name: str, command: Sequence[str], folder: Path, *, stop: signal.Signals, patience: float = 10
) -> Iterator[Child]:
    """Runs a command for as long as the block lasts, its log in `folder`, then sends it `stop`.

    What has not ended after `patience` seconds is killed, with everything that it started. Raises
    `EvalError` when there is no such command.
    """
    log = folder / f"{name}.log"
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
    except OSError as error:
        raise EvalError(f"cannot start {name}: {error}") from error
    try:
        yield Child(name, process, log)
    finally:
        _end(process, stop, patience)


def _end(process: subprocess.Popen[bytes], stop: signal.Signals, patience: float) -> None:
    started = _descendants(process.pid)
    process.send_signal(stop)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=patience)
    for each in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.kill()
    process.wait()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on at this moment."""
    with contextlib.ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in bound]
