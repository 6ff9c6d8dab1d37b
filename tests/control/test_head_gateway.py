"""The head and its gateway process: restarted when it dies, adopted when the head does."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes import control_gateway_process
from tests.fakes.control_tokens import bearer
from tests.fakes.control_waiting import eventually
from tests.fakes.ports import free_address

pytestmark = pytest.mark.processes

START = """
import asyncio, sys
from pathlib import Path
from penstock.control.cli.loading import loading
with loading():
    from penstock.control.head import run_head
from penstock.control.settings import HeadSettings

data_dir, admin, rpc, gateway, metrics, binary = sys.argv[1:]
settings = HeadSettings(
    data_dir=Path(data_dir), admin=admin, rpc=rpc, gateway=gateway, metrics=metrics,
    gateway_binary=Path(binary), node="n1", zone="z1", client_addresses=False,
    cors_origins=("https://a.example", "https://b.example"),
)
sys.exit(asyncio.run(run_head(settings)))
"""


class HeadWithGateway:
    """A head on addresses of its own, whose gateway is the stand-in."""

    def __init__(self, directory: Path) -> None:
        binary = directory / "penstock-gateway"
        script = control_gateway_process.__file__
        binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        binary.chmod(0o755)
        self.admin, self.rpc, self.gateway = free_address(), free_address(), free_address()
        addresses = [self.admin, self.rpc, self.gateway, free_address()]
        data_dir = str(directory / "data")
        self.token = directory / "data" / "admin.token"
        self.argv = [sys.executable, "-c", START, data_dir, *addresses, str(binary)]
        self.process: subprocess.Popen[str] | None = None
        self.client = httpx.AsyncClient(trust_env=False, timeout=5, verify=False)

    def start(self) -> None:
        self.process = subprocess.Popen(self.argv, text=True, stderr=subprocess.DEVNULL)

    def end(self, number: int) -> int:
        assert self.process
        self.process.send_signal(number)
        return self.process.wait(timeout=15)

    async def gateways(self) -> list[dict[str, Any]]:
        try:
            headers = bearer(self.token)
            reply = await self.client.get(f"http://{self.admin}/admin/v1/gateways", headers=headers)
        except (OSError, httpx.HTTPError):
            return []
        return list(reply.json())

    async def ready_gateway(self, *, other_than: int = 0) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            for gateway in await self.gateways():
                if gateway["state"] == "ready" and gateway["pid"] != other_than:
                    return gateway
            return None

        found = await eventually(look, "the gateway is ready")
        assert found
        return found


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadWithGateway]:
    head = HeadWithGateway(tmp_path)
    pids = set()
    try:
        head.start()
        pids.add((await head.ready_gateway())["pid"])
        yield head
        pids |= {gateway["pid"] for gateway in await head.gateways()}
    finally:
        await head.client.aclose()
        if head.process and head.process.poll() is None:
            head.end(signal.SIGKILL)
        for pid in pids - {0}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def test_the_gateway_is_told_which_pages_may_call(head: HeadWithGateway) -> None:
    pid = (await head.ready_gateway())["pid"]
    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    assert "--cors-origin https://a.example --cors-origin https://b.example" in command
    assert "--no-client-addresses" in command


async def test_the_gateway_is_told_where_it_is(head: HeadWithGateway) -> None:
    pid = (await head.ready_gateway())["pid"]
    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    assert "--node n1 --zone z1" in command
    assert re.search(r"--programs-dir \S+/programs ", command)


async def test_kill_9_of_the_gateway_it_is_started_again(head: HeadWithGateway) -> None:
    first = (await head.ready_gateway())["pid"]
    os.kill(first, signal.SIGKILL)

    async def answers() -> bool:
        try:
            return (await head.client.get(f"http://{head.gateway}/livez")).status_code == 200
        except httpx.HTTPError:
            return False

    await eventually(answers, "the gateway answers again")
    gateway = await head.ready_gateway(other_than=first)
    assert gateway["restarts"] == 1


async def test_the_gateway_outlives_kill_9_of_the_head_and_is_adopted(
    head: HeadWithGateway,
) -> None:
    first = (await head.ready_gateway())["pid"]
    head.end(signal.SIGKILL)
    reply = await head.client.get(f"http://{head.gateway}/livez")
    assert reply.status_code == 200
    head.start()
    assert (await head.ready_gateway())["pid"] == first
    os.kill(first, signal.SIGKILL)
    gateway = await head.ready_gateway(other_than=first)
    assert gateway["restarts"] == 1


async def test_an_orderly_stop_of_the_head_leaves_the_gateway_to_the_next_one(
    head: HeadWithGateway,
) -> None:
    pid = (await head.ready_gateway())["pid"]
    assert head.end(signal.SIGTERM) == 0
    assert (await head.client.get(f"http://{head.gateway}/livez")).status_code == 200
    head.start()
    assert (await head.ready_gateway())["pid"] == pid


async def test_ctrl_c_ends_the_gateway_too(head: HeadWithGateway) -> None:
    pid = (await head.ready_gateway())["pid"]
    assert head.end(signal.SIGINT) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_taken_gateway_port_is_one_clear_line_and_exit_code_1(tmp_path: Path) -> None:
    head = HeadWithGateway(tmp_path)
    host, port = head.gateway.rsplit(":", 1)
    with socket.create_server((host, int(port))):
        ended = subprocess.run(head.argv, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    line = ended.stderr.splitlines()[-1]
    assert line == f"penstock-gateway: error: {head.gateway} is taken"


def test_a_gateway_that_cannot_be_started_is_one_clear_line_and_exit_code_1(
    tmp_path: Path,
) -> None:
    head = HeadWithGateway(tmp_path)
    argv = [*head.argv[:-1], str(tmp_path / "nothing")]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "cannot start" in ended.stderr.splitlines()[-1]
