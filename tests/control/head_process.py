"""A head as a process, for tests that start, kill and ask it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from penstock.control.store import sqlite_formats
from tests.fakes.control_tokens import bearer
from tests.fakes.control_waiting import eventually

START = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from penstock.control.cli.loading import loading
with loading():
    from penstock.control.head import run_head
from penstock.control.settings import HeadSettings, HeadTimings

timings = HeadTimings(
    silent_after=timedelta(seconds=1), lost_after=timedelta(seconds=2),
    ping_every=timedelta(milliseconds=100), drain=timedelta(seconds=1),
    take_over_after=timedelta(seconds=1),
)
data_dir, admin, rpc, *more = sys.argv[1:]
settings = HeadSettings(
    data_dir=Path(data_dir),
    admin=admin,
    rpc=rpc,
    run_gateway=False,
    timings=timings,
    existing_store="--existing-store" in more,
    take_over="--take-over" in more,
    head_metrics="" if "--head-metrics" not in more else more[more.index("--head-metrics") + 1],
)
sys.exit(asyncio.run(run_head(settings)))
"""


class HeadProcess:
    """A head that tests start, kill and start again at the same addresses."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.admin = "127.0.0.1:0"
        self.rpc = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.AsyncClient(trust_env=False, timeout=5, verify=False)

    async def start(self, *flags: str) -> None:
        self.process = self.spawn(*flags)
        found = await eventually(self._announced, "the head announces its addresses")
        self.admin, self.rpc = found["admin"], found["rpc"]
        await eventually(self._lives, "the head answers /livez")

    def spawn(self, *flags: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", START, str(self.data_dir), self.admin, self.rpc, *flags]
        log = (self.data_dir.parent / "head.log").open("a")
        with log:
            return subprocess.Popen(argv, stderr=log, text=True)

    def end(self, number: int) -> int:
        assert self.process
        os.kill(self.process.pid, number)
        return self.process.wait(timeout=15)

    async def get(self, path: str) -> Any:
        reply = await self.client.get(
            f"http://{self.admin}/admin/v1/{path}", headers=self.authorization
        )
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def put(self, name: str, **spec: object) -> None:
        body = {"engine": "simulated", "model": "m", **spec}
        url = f"http://{self.admin}/admin/v1/deployments/{name}"
        reply = await self.client.put(url, json=body, headers=self.authorization)
        assert reply.status_code in (200, 201), reply.text

    async def offer_pirate(self, deployment: str) -> str:
        """The deployment offers pirate@1, which comes with Penstock, as `p`; its digest."""
        api, headers = f"http://{self.admin}/admin/v1", self.authorization
        body = {
            "name": "pirate",
            "version": 1,
            "base": deployment,
            "source": "penstock-mini/pirate",
        }
        made = await self.client.post(f"{api}/adapters", json=body, headers=headers)
        assert made.status_code == 201, made.text
        alias = f"{api}/aliases/{deployment}/p"
        reply = await self.client.put(alias, json={"target": "pirate@1"}, headers=headers)
        assert reply.status_code == 201, reply.text
        return str(made.json()["digest"])

    @property
    def authorization(self) -> dict[str, str]:
        return bearer(self.data_dir / "admin.token")

    async def is_ready(self, name: str) -> bool:
        deployment = await self.get(f"deployments/{name}")
        return bool(deployment["status"]["phase"] == "ready")

    async def is_held(self) -> bool:
        return "--take-over" in (await self.get("version"))["held"]

    def back_up(self, copy: Path) -> None:
        sqlite_formats.copied(self.data_dir / "penstock.db", copy, lambda _: None)

    def restore(self, copy: Path) -> None:
        for suffix in ("-wal", "-shm"):
            (self.data_dir / f"penstock.db{suffix}").unlink(missing_ok=True)
        sqlite_formats.copied(copy, self.data_dir / "penstock.db", lambda _: None)

    async def _announced(self) -> Any:
        try:
            found = json.loads((self.data_dir / "head.json").read_text())
        except OSError:
            return None
        assert self.process
        return found if found["pid"] == self.process.pid else None

    async def _lives(self) -> bool:
        try:
            reply = await self.client.get(f"http://{self.admin}/livez")
        except httpx.HTTPError:
            return False
        if reply.status_code != 200:
            return False
        return bool(reply.json()["snapshot_version"] or await self.is_held())


@asynccontextmanager
async def running_head(
    data_dir: Path, made: Callable[[Path], HeadProcess] = HeadProcess
) -> AsyncIterator[HeadProcess]:
    """A head that serves, and is killed in the end where the test has not ended it."""
    head = made(data_dir)
    try:
        await head.start()
        yield head
    finally:
        await head.client.aclose()
        if head.process and head.process.poll() is None:
            head.end(signal.SIGKILL)
