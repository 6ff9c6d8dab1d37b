"""A whole Penstock, started with the command that users type, as the end-to-end tests see it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests.fakes.ports import free_ports

MARK = "PENSTOCK_TEST_RUN"
# This checkout's own, whichever environment the tests themselves run in.
PENSTOCK = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "penstock"
T = TypeVar("T")


def eventually(probe: Callable[[], T | None], *, within: float, what: str) -> T:
    """The first true answer of `probe`; fails after `within` seconds, saying `what` is missing."""
    deadline = time.monotonic() + within
    pause = 0.02
    while True:
        try:
            if answer := probe():
                return answer
            seen: object = answer
        except (OSError, KeyError, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it stays in a circle with this frame, and its socket with it
            seen = error
        assert time.monotonic() < deadline, f"not within {within} s: {what} (last: {seen!r})"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def get_json(url: str, *, token: str = "") -> Any:
    """The JSON that a GET answers with."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=5) as reply:
        return json.load(reply)


class System:
    """One `penstock serve` on free ports, with its data in a folder of its own."""

    verb = "serve"
    within: tuple[str, ...] = ()  # a command that the command is started by

    def __init__(self, folder: Path, *options: str) -> None:
        self.data = folder / "data"
        self.run_id = uuid.uuid4().hex
        ports = free_ports(4)
        self.gateway_port, self.admin_port, self.rpc_port, self.metrics_port = ports
        self.options = options
        self.log = folder / "serve.log"
        self.log.unlink(missing_ok=True)
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the command; its output goes to `log`."""
        command = [
            *self.within, str(PENSTOCK), self.verb, *self.options,
            "--gateway", f"127.0.0.1:{self.gateway_port}",
            "--admin", f"127.0.0.1:{self.admin_port}",
            "--rpc", f"127.0.0.1:{self.rpc_port}",
            "--gateway-metrics", f"127.0.0.1:{self.metrics_port}",
            "--data-dir", str(self.data),
        ]  # fmt: skip
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, MARK: self.run_id}
            )

    @property
    def base_url(self) -> str:
        """What a client's `base_url` is set to."""
        return f"http://127.0.0.1:{self.gateway_port}/v1"

    @property
    def gateway_url(self) -> str:
        """The gateway without a path."""
        return f"http://127.0.0.1:{self.gateway_port}"

    def admin(self, path: str) -> Any:
        """A GET on the admin REST API."""
        url = f"http://127.0.0.1:{self.admin_port}/admin/v1/{path}"
        return get_json(url, token=self.admin_token)

    def change(self, method: str, path: str, body: Any = None) -> Any:
        """A change by the admin REST API; its answer, if there is one."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.admin_port}/admin/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "authorization": f"Bearer {self.admin_token}",
                "content-type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            text = reply.read()
            return json.loads(text) if text else None

    def replace_gateway(self, gateway_id: str) -> Any:
        """Has the head put another gateway in the place of this one."""
        url = f"http://127.0.0.1:{self.admin_port}/admin/v1/gateways/{gateway_id}/replace"
        headers = {"authorization": f"Bearer {self.admin_token}"}
        request = urllib.request.Request(url, method="POST", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    @property
    def admin_token(self) -> str:
        """The token of role admin that the head's first start wrote."""
        return (self.data / "admin.token").read_text().strip()

    def replicas(self, state: str = "ready") -> list[dict[str, Any]]:
        """The replicas in a state, as the admin API lists them."""
        return [r for r in self.admin("replicas") if r["state"] == state]

    def gateway(self) -> dict[str, Any]:
        """The one local gateway."""
        gateways: list[dict[str, Any]] = self.admin("gateways")
        assert len(gateways) == 1
        return gateways[0]

    def wait_ready(self, replicas: int = 1, *, within: float = 120) -> None:
        """Returns when the gateway lists the model and all replicas are ready."""

        def ready() -> bool:
            assert self.process.poll() is None, self.output()
            listed = get_json(self.base_url + "/models")["data"]
            return bool(listed) and len(self.replicas()) == replicas

        try:
            eventually(ready, within=within, what=f"{replicas} ready replicas")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output()}") from error

    def output(self) -> str:
        """What the command printed, and the ends of its processes' logs."""
        parts = [self.log.read_text(errors="replace")]
        for path in sorted(self.data.rglob("*.log")):
            parts.append(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}")
        return "\n".join(parts)

    def processes(self, *words: str) -> list[psutil.Process]:
        """Every living process of this system whose command line holds all the words."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                line = " ".join(process.cmdline())
                # A router program's process has an environment of its own.
                is_ours = process.environ().get(MARK) == self.run_id
                if not is_ours and f"control.router --announce {self.data}/" not in line:
                    continue
            except psutil.Error:
                continue
            if all(word in line for word in words):
                found.append(process)
        return found

    def pid_of(self, role: str) -> int:
        """The pid of the process of a role: "head" or "node"."""
        found = [p for p in self.processes("penstock", f" {role} ") if role in p.cmdline()[1:5]]
        assert len(found) == 1, [p.cmdline() for p in found]
        return int(found[0].pid)

    def kill(self, pid: int) -> None:
        """kill -9."""
        os.kill(pid, signal.SIGKILL)

    def stop(self, *, within: float = 10) -> None:
        """Ctrl-C; fails unless the command ends with 0 in time and nothing is left of it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert self.process.wait(timeout=within + 20) == 0, self.output()
        took = time.monotonic() - began
        left = [p.cmdline() for p in self.processes()]
        assert not left, f"left behind: {left}\n{self.output()}"
        assert took < within, f"stopping took {took:.1f} s\n{self.output()}"

    def destroy(self) -> None:
        """Ends whatever still runs, after a test that failed."""
        for process in self.processes():
            process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(
    folder: Path, *options: str, replicas: int = 1, within: float = 120
) -> Iterator[System]:
    """A system that is ready, and that must stop cleanly at the end."""
    system = System(folder, *options, "--replicas", str(replicas))
    try:
        system.wait_ready(replicas, within=within)
        yield system
        system.stop()
    finally:
        system.destroy()
