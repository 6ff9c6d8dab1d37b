"""The real gateway binary as a child process of a test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.fakes.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ROOT / "gateway_cpp" / "build" / "release" / "penstock-gateway"


def binary() -> Path:
    """PENSTOCK_GATEWAY, or the release build."""
    path = Path(os.environ.get("PENSTOCK_GATEWAY", DEFAULT))
    assert path.is_file(), (
        f"no gateway at {path}: build it (cmake --preset release && cmake --build "
        "--preset release, in gateway_cpp) or name another in PENSTOCK_GATEWAY"
    )
    return path


class GatewayProcess:
    """Runs from start() on, on a free port; stopped hard at the end of `async with`."""

    def __init__(self, folder: Path, *flags: str, env: Mapping[str, str] | None = None) -> None:
        """`env`: added to ours."""
        self.folder = folder
        self.flags = flags
        self._env = {**os.environ, **(env or {})}
        self.port = 0
        self._log = folder / "gateway.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> GatewayProcess:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def is_running(self) -> bool:
        """It was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def base_url(self) -> str:
        """Where it listens."""
        scheme = "https" if "--tls-cert" in self.flags else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def status_port(self) -> int:
        """Where its metrics are; it must have been started with --metrics."""
        line = self.find_log("status port")
        assert line is not None, "no --metrics"
        return int(line["address"].rpartition(":")[2])

    async def start(self) -> None:
        """Starts it and waits until it accepts connections."""
        self._log.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(binary()), "--listen", "127.0.0.1:0", *self.flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=self._env,
            )
        line = await until(self._listening, "the gateway listens")
        self.port = int(line["address"].rpartition(":")[2])

    def _listening(self) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        return self.find_log("listening")

    def logs(self) -> list[dict[str, Any]]:
        """Every whole line it has written; each must be a JSON object."""
        lines = self._log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def find_log(self, message: str, **fields: object) -> dict[str, Any] | None:
        """The first line with that message and these fields."""
        for line in self.logs():
            if line["message"] == message and all(line.get(k) == v for k, v in fields.items()):
                return line
        return None

    def count_log(self, message: str) -> int:
        """How many lines have that message."""
        return sum(line["message"] == message for line in self.logs())

    def resident_bytes(self) -> int:
        """Memory in use now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self) -> int:
        """Descriptors in use now."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def terminate(self) -> None:
        """Asks it to drain and end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once and waits for that."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=20)

    async def exit_code(self) -> int:
        """Waits until it has ended."""
        process = self._process
        assert process is not None
        await until(lambda: process.poll() is not None, "the gateway ends")
        return process.returncode
