"""Calls inside a cluster go straight to their peer."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import asyncio
from penstock.control.outside.dialer import Dialer
from penstock.v1 import nodes_pb2, nodes_pb2_grpc
from tests.fakes.control_agent import serving_agent

async def main():
    async with serving_agent() as agent, Dialer().channel(agent.address) as channel:
        stub = nodes_pb2_grpc.NodeAgentStub(channel)
        await stub.StopReplica(nodes_pb2.StopReplicaRequest(replica_id="r1"), timeout=20)
        assert agent.stopped == ["r1"]

asyncio.run(main())
"""


def test_a_proxy_for_the_world_outside_is_left_alone() -> None:
    nowhere = "http://127.0.0.1:1"
    environment = {**os.environ, "http_proxy": nowhere, "https_proxy": nowhere}
    for name in ("no_proxy", "no_grpc_proxy", "NO_PROXY"):
        environment.pop(name, None)
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
