"""The two programs of evals/native, called by command line."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.evals.client import CHAT_PATH, Answer
from penstock.evals.errors import EvalError
from penstock.evals.processes import running

ENDLESS_MS = 3_600_000  # a window that only its end by a signal ends
BUILD_HINT = "build it: cmake -S evals/native -B build/evals && cmake --build build/evals"


@dataclass(frozen=True, slots=True)
class Target:
    """Something that answers chat requests on a loopback port, and its processes by role."""

    name: str
    port: int
    pids: Mapping[str, int]
    key: str = ""  # that requests are sent with
    metrics_url: str = ""  # read while it is under load


@dataclass(frozen=True, slots=True)
class Load:
    """What the load client does to a target; times in milliseconds."""

    connections: int
    warmup_ms: int
    window_ms: int
    requests: int = 0
    endless: bool = False
    connects_per_second: int = 4000  # less: connections that do not ask in step


@dataclass(frozen=True, slots=True)
class Source:
    """A running event source."""

    port: int
    pid: int


class NativePrograms:
    """The programs in a build folder. Raises `EvalError` when they are not there."""

    def __init__(self, build: Path) -> None:
        self._load = build / "penstock-load"
        self._source = build / "penstock-sse-source"
        for program in (self._load, self._source):
            if not program.exists():
                raise EvalError(f"{program} is missing: {BUILD_HINT}")

    def load(self, target: Target, load: Load, body: Path) -> dict[str, Any]:
        """Puts a load on a target and returns the client's report."""
        limit = 60 + (load.warmup_ms + load.window_ms) / 1000
        done = subprocess.run(
            self._command(target, load, body),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if done.returncode != 0:
            raise EvalError(f"the load client failed: {done.stderr.strip()}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    @contextlib.contextmanager
    def kept(
        self, target: Target, connections: int, body: Path, folder: Path
    ) -> Iterator[dict[str, Any]]:
        """Keeps a load on a target while the block lasts; what it gives is the report afterwards.

        The block begins when every connection has had an answer.
        """
        load = Load(connections, warmup_ms=0, window_ms=ENDLESS_MS)
        command = self._command(target, load, body)
        report: dict[str, Any] = {}
        with running("kept-load", command, folder, stop=signal.SIGTERM) as child:
            child.wait_for(lambda: "measuring\n" in child.log.read_text(), within=60, what="load")
            yield report
        last = child.log.read_text().splitlines()[-1]
        if not last.startswith("{"):
            raise EvalError(f"the load client did not report: {child.tail()}")
        report |= json.loads(last)

    def _command(self, target: Target, load: Load, body: Path) -> list[str]:
        flags = {
            "port": target.port,
            "path": CHAT_PATH,
            "body-file": body,
            "key": target.key,
            "connections": load.connections,
            "connects-per-second": load.connects_per_second,
            "warmup-ms": load.warmup_ms,
            "window-ms": load.window_ms,
            "requests": load.requests,
            "first-events": "start" if load.endless else "window",
            "watch": ",".join(f"{role}={pid}" for role, pid in target.pids.items()),
        }
        words = ((f"--{name}", str(value)) for name, value in flags.items())
        return [str(self._load), *(word for pair in words for word in pair)]

    @contextlib.contextmanager
    def source(self, recorded: Answer, step_us: int, folder: Path) -> Iterator[Source]:
        """Serves a recorded answer while the block lasts; see evals/native/sse_source.h."""
        recording = folder / "recorded-answer"
        recording.write_bytes(recorded.body)
        command = [
            str(self._source),
            *("--recording", str(recording)),
            *("--kind", "stream" if recorded.stream else "unary"),
            *("--step-us", str(step_us)),
        ]
        with running("sse-source", command, folder, stop=signal.SIGTERM) as child:
            said = child.wait_for(
                lambda: _whole_line(child.log), within=10, what="the line with its port"
            )
            yield Source(**json.loads(said))


def _whole_line(log: Path) -> str | None:
    text = log.read_text()
    return text if text.startswith("{") and text.endswith("\n") else None
