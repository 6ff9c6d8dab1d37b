"""The system that every client is tried against, and what a test may do to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.system import PENSTOCK, System, eventually

MODEL = "penstock-mini"  # what `make serve` serves
EMBEDDER = "penstock-embed"
LOADING = "penstock-loading"  # its replica never becomes ready

EMBEDDER_SPEC = {"model": "penstock-embed"}
CLOUD = "cloud"  # the chat model by way of a provider: this system's own gateway
CLOUD_EMBEDDER = "cloud-embed"
_KEY_FILE = "own-gateway.key"

LOADING_SPEC = {"model": "none", "engine": "simulated"}


class Served:
    """One Penstock with a chat model, an embedder, and a deployment whose replica only loads."""

    def __init__(self, system: System, page_port: int) -> None:
        self.system = system
        self.page_port = page_port  # the origin whose pages may call
        self.base_url = system.base_url
        self.root_url = system.gateway_url

    def deploy(self, name: str, spec: dict[str, Any]) -> None:
        """Has the head serve something under a name."""
        self._administer("PUT", name, json.dumps(spec).encode())

    def take_down(self, name: str) -> None:
        """Has the head serve it no longer."""
        self._administer("DELETE", name)

    def _administer(self, method: str, name: str, document: bytes | None = None) -> None:
        url = f"http://127.0.0.1:{self.system.admin_port}/admin/v1/deployments/{name}"
        headers = {
            "authorization": f"Bearer {self.system.admin_token}",
            "content-type": "application/json",
        }
        request = urllib.request.Request(url, method=method, headers=headers, data=document)
        urllib.request.urlopen(request, timeout=10).close()

    def ready_replica(self, deployment: str = MODEL) -> dict[str, Any]:
        """The deployment's one replica, once it is ready."""

        def ready() -> dict[str, Any] | None:
            found = [r for r in self.system.replicas() if r["deployment"] == deployment]
            return found[0] if found else None

        return eventually(ready, within=120, what=f"a ready replica of {deployment}")

    def lose_replica(self) -> None:
        """kill -9 of the replica that answers for the chat model, whatever it is doing."""
        self.system.kill(self.ready_replica()["pid"])

    def configure(self, **settings: object) -> None:
        """Changes what the chat model's deployment goes by."""
        self.system.change("PATCH", f"deployments/{MODEL}/settings", settings)

    @contextmanager
    def told_of_losses(self) -> Iterator[None]:
        """Answers of the chat model go on nowhere."""
        self.configure(resume="off")
        yield
        self.configure(resume="on")

    @contextmanager
    def waiting_for_the_next(self) -> Iterator[None]:
        """They wait for the next replica for as long as it takes to start."""
        self.configure(resume_wait_ms=120_000)
        yield
        self.configure(resume_wait_ms=10_000)

    def wait_until_it_answers(self) -> None:
        """Returns when the chat model answers again."""
        body = {"model": MODEL, "prompt": "Hello", "max_tokens": 1}

        def answers() -> bool:
            request = urllib.request.Request(
                f"{self.base_url}/completions",
                headers={"content-type": "application/json"},
                data=json.dumps(body).encode(),
            )
            try:
                urllib.request.urlopen(request, timeout=30).close()
            except urllib.error.HTTPError as error:
                error.close()
                return False
            return True

        eventually(answers, within=120, what=f"an answer of {MODEL}")

    def load(self) -> dict[str, int]:
        """What the chat model's engine does at this moment, as it tells gateways itself."""
        program = Path(__file__).with_name("engine_load.py")
        token = self.system.data / "cluster.token"
        replica = self.ready_replica()
        told = subprocess.run(
            [PENSTOCK.with_name("python"), program, replica["id"], replica["address"], token],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        load: dict[str, int] = json.loads(told.stdout)
        return load

    def wait_until_idle(self) -> None:
        """Returns when the chat model's engine computes nothing."""
        eventually(
            lambda: (load := self.load())["running"] == load["waiting"] == 0,
            within=10,
            what="an idle engine",
        )

    def last_settled(self) -> dict[str, Any]:
        """The gateway's log line for the request that ended last."""
        (log,) = self.system.data.rglob("gateway-*.log")
        lines = [line for line in log.read_text().splitlines() if "request settled" in line]
        settled: dict[str, Any] = json.loads(lines[-1])
        return settled

    @contextmanager
    def by_way_of_a_provider(self) -> Iterator[None]:
        """`CLOUD` and `CLOUD_EMBEDDER`, which an engine for OpenAI-compatible providers serves."""
        (self.system.data / "secrets" / _KEY_FILE).write_text("none")
        args = {"base_url": self.base_url, "api_key_file": _KEY_FILE}
        for name, model in ((CLOUD, MODEL), (CLOUD_EMBEDDER, EMBEDDER)):
            self.deploy(name, {"engine": "openai", "model": model, "engine_args": args})
            self.ready_replica(name)
        yield
        for name in (CLOUD, CLOUD_EMBEDDER):
            self.take_down(name)

    @contextmanager
    def one_that_loads(self) -> Iterator[None]:
        """`LOADING`, whose replica is stopped by a signal before it is ready."""
        self.deploy(LOADING, LOADING_SPEC)
        (process, *_) = eventually(
            lambda: self.system.processes("penstock.replica", LOADING),
            within=30,
            what=f"a process of {LOADING}",
        )
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)
