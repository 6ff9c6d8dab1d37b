"""Head and agent as users start them: the head makes the token, the agent needs it."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from penstock.v1 import nodes_pb2, nodes_pb2_grpc
from tests.fakes.control_tokens import bearer
from tests.fakes.control_waiting import eventually
from tests.fakes.ports import free_address

pytestmark = pytest.mark.processes
TLS = Path(__file__).parents[1] / "fakes" / "tls"


class Started:
    """Processes of the `penstock` command, ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def penstock(self, role: str, data_dir: Path, *options: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "penstock.control.main", role, "--data-dir", str(data_dir)]
        with (self.folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen([*argv, *options], stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def log_of(self, role: str) -> str:
        return (self.folder / f"{role}.log").read_text()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    started = Started(tmp_path)
    yield started
    for process in started.processes:
        process.kill()
        process.wait()


async def head(started: Started, data_dir: Path, *options: str) -> dict[str, str]:
    """A head without a gateway, and the addresses that it announced."""
    ports = ("--admin", "127.0.0.1:0", "--rpc", "127.0.0.1:0")
    started.penstock("head", data_dir, "--no-gateway", *ports, *options)

    async def announced() -> Any:
        path = data_dir / "head.json"
        return json.loads(path.read_text()) if path.exists() else None

    found = await eventually(announced, "the head announces its addresses")
    return dict(found)


async def nodes(
    url: str, data_dir: Path, verify: ssl.SSLContext | bool = True
) -> Sequence[dict[str, Any]]:
    async with httpx.AsyncClient(trust_env=False, verify=verify) as client:
        try:
            reply = await client.get(
                f"{url}/admin/v1/nodes", headers=bearer(data_dir / "admin.token")
            )
        except httpx.HTTPError:
            return []
        return list(reply.json())


async def test_an_agent_needs_a_copy_of_the_heads_token(tmp_path: Path, started: Started) -> None:
    ours, theirs = tmp_path / "head", tmp_path / "node"
    found = await head(started, ours)
    token = ours / "cluster.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    stranger = started.penstock("node", theirs, "--head", found["rpc"], "--node-id", "n1")

    async def refused() -> bool:
        return "UNAUTHENTICATED" in started.log_of("node")

    await eventually(refused, "the agent without a token is refused")
    assert await nodes(f"http://{found['admin']}", ours) == []
    stranger.kill()
    stranger.wait()
    shutil.copy(token, theirs / "cluster.token")
    (theirs / "cluster.token").chmod(0o600)
    started.penstock("node", theirs, "--head", found["rpc"], "--node-id", "n1")

    async def registered() -> bool:
        return [n["id"] for n in await nodes(f"http://{found['admin']}", ours)] == ["n1"]

    await eventually(registered, "the agent with the token registers")
    said = "".join(started.log_of(role) for role in ("head", "node"))
    assert token.read_text().strip() not in said


async def test_an_agent_takes_up_the_token_of_a_head_that_starts_after_it(
    tmp_path: Path, started: Started
) -> None:
    data = tmp_path / "data"
    address = free_address()
    agent = started.penstock("node", data, "--head", address, "--node-id", "n1")

    async def waits() -> bool:
        return "the head does not answer" in started.log_of("node")

    await eventually(waits, "the agent asks for its head")
    assert not (data / "cluster.token").exists()
    rpc = ("--rpc", address, "--admin", "127.0.0.1:0")
    started.penstock("head", data, "--no-gateway", *rpc)

    async def ready() -> bool:
        if not (data / "head.json").exists():
            return False
        url = "http://" + json.loads((data / "head.json").read_text())["admin"]
        return [n["state"] for n in await nodes(url, data)] == ["ready"]

    await eventually(ready, "the agent registers")
    assert agent.poll() is None
    said = started.log_of("node")
    assert said.count("is taken up as the cluster token") == 1
    port_of_agent = (data / "node-agent.port").read_text().strip()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port_of_agent}") as channel:
        stub = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.ListReplicas(nodes_pb2.ListReplicasRequest(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_the_head_takes_nothing_from_strangers(tmp_path: Path, started: Started) -> None:
    found = await head(started, tmp_path / "head")
    async with grpc.aio.insecure_channel(found["rpc"]) as channel:
        stub = nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]
        node = nodes_pb2.NodeInfo(node_id="evil", agent_address="127.0.0.1:1")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Register(nodes_pb2.RegisterNodeRequest(node=node), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert await nodes(f"http://{found['admin']}", tmp_path / "head") == []


async def test_head_and_agent_speak_tls_with_each_other(tmp_path: Path, started: Started) -> None:
    data, ca = tmp_path / "data", str(TLS / "ca.pem")
    pair = ("--tls-cert", str(TLS / "server.pem"), "--tls-key", str(TLS / "server.key"))
    found = await head(started, data, *pair, "--tls-ca", ca)
    rest = ("--head", found["rpc"], "--node-id", "n1", "--tls-ca", ca)
    started.penstock("node", data, *rest, *pair)

    trusted = ssl.create_default_context(cafile=ca)

    async def ready() -> bool:
        listed = await nodes(f"https://{found['admin']}", data, verify=trusted)
        return [node["state"] for node in listed] == ["ready"]

    await eventually(ready, "the agent registers over TLS")


def test_a_token_that_others_can_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "cluster.token").write_text("word")
    (tmp_path / "cluster.token").chmod(0o644)
    for role in ("head", "node"):
        ended = subprocess.run(
            [sys.executable, "-m", "penstock.control.main", role, "--data-dir", str(tmp_path)],
            env={**os.environ, "PENSTOCK_GATEWAY_BINARY": "/bin/true"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 1
        (line,) = ended.stderr.splitlines()
        assert line.startswith(f"penstock {role}: error: ")
        assert "chmod 600" in line
