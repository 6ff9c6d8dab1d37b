"""Logs that are read at agents, as far as their end tells something of the agent."""

from __future__ import annotations

import pytest

from penstock.control.errors import NodeUnreachable, Unavailable
from penstock.control.managers.fleet.replica_logs import LogRequest
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.log_client import GrpcAgentLogs
from penstock.control.state.fleet.replica import ReplicaId
from tests.fakes.control_agent import serving_agent

R1 = ReplicaId("r1")


async def test_an_agent_of_an_older_version_is_told_from_one_that_is_away() -> None:
    logs = GrpcAgentLogs(Dialer())
    async with serving_agent() as agent:  # which implements no ReadLog
        with pytest.raises(Unavailable, match=r"of an older version.*`log_path`"):
            await anext(logs.read(agent.address, R1, LogRequest(9)))
    with pytest.raises(NodeUnreachable, match="UNAVAILABLE"):
        await anext(logs.read(agent.address, R1, LogRequest(9)))
