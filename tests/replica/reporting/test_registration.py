"""Registration with a node agent that is there, is not, and comes back."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc.aio
import pytest

from penstock.replica.endings import NotRegistered
from penstock.replica.reporting.registration import Registration
from penstock.v1 import inference_pb2, nodes_pb2, nodes_pb2_grpc


class Agent(nodes_pb2_grpc.NodeAgentServicer):
    """A node agent that can be started at a port."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[nodes_pb2.RegisterReplicaRequest] = asyncio.Queue()
        self.metadata: dict[str, str] = {}

    async def RegisterReplica(
        self, request: nodes_pb2.RegisterReplicaRequest, context: Any
    ) -> nodes_pb2.RegisterReplicaReply:
        self.heard.put_nowait(request)
        self.metadata = dict(context.invocation_metadata())
        return nodes_pb2.RegisterReplicaReply()

    async def start(self, port: int = 0) -> tuple[grpc.aio.Server, int]:
        """Serves at a port of this machine; 0: any free one."""
        server = grpc.aio.server()
        nodes_pb2_grpc.add_NodeAgentServicer_to_server(self, server)  # type: ignore[no-untyped-call]
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        return server, bound


async def test_the_first_word_says_who_and_where() -> None:
    agent = Agent()
    server, port = await agent.start()
    await Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77).announce()
    said = agent.heard.get_nowait()
    assert (said.replica_id, said.address, said.pid) == ("r1", "127.0.0.1:9", 77)
    await server.stop(None)


async def test_a_replica_of_a_cluster_says_its_token() -> None:
    agent = Agent()
    server, port = await agent.start()
    await Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77, "secret").announce()
    assert agent.metadata["authorization"] == "Bearer secret"
    await server.stop(None)


async def test_a_proxy_of_the_environment_is_not_asked_for_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    agent = Agent()
    server, port = await agent.start()
    await Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77).announce()
    assert agent.heard.get_nowait().pid == 77
    await server.stop(None)


async def test_without_an_agent_the_first_word_fails_and_names_its_address() -> None:
    with pytest.raises(NotRegistered, match=r"127\.0\.0\.1:1: UNAVAILABLE"):
        await Registration("127.0.0.1:1", "r1", "127.0.0.1:9", 77).announce()


async def test_the_second_word_waits_for_an_agent_that_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent()
    server, port = await agent.start()
    await server.stop(None)
    registration = Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77)
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(registration.keep_telling())
            registration.ready(2048, 8)
            while "the node agent does not answer" not in caplog.text:
                await asyncio.wait({telling}, timeout=0.01)
            server, _ = await agent.start(port)
            said = await agent.heard.get()
            telling.cancel()
    assert (said.max_model_len, said.capacity) == (2048, 8)
    await server.stop(None)


async def test_what_it_holds_is_told_whole_and_the_newest_alone() -> None:
    agent = Agent()
    server, port = await agent.start()
    registration = Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77)
    pirate = inference_pb2.Adapter(name="pirate@1", digest="d" * 64)
    broken = inference_pb2.AdapterFailure(name="json@1", digest="e" * 64, reason="no such file")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        registration.holds([], [], 2, 16)
        registration.holds([pirate], [broken], 2, 16)
        telling = tasks.create_task(registration.keep_telling())
        said = await agent.heard.get()
        assert list(said.adapters) == [pirate]
        assert list(said.failed_adapters) == [broken]
        assert (said.adapter_slots, said.max_adapter_rank) == (2, 16)
        registration.holds([], [], 2, 16)
        said = await agent.heard.get()
        assert (list(said.adapters), list(said.failed_adapters)) == ([], [])
        telling.cancel()
    assert agent.heard.empty()
    await server.stop(None)


async def test_that_it_resumes_is_told_again_when_it_becomes_known_after_ready() -> None:
    agent = Agent()
    server, port = await agent.start()
    registration = Registration(f"127.0.0.1:{port}", "r1", "127.0.0.1:9", 77)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        registration.ready(2048, 8)
        telling = tasks.create_task(registration.keep_telling())
        said = await agent.heard.get()
        assert (said.resumes, said.no_resume) == (False, "")
        registration.resume_known("seeded: differs", True)
        said = await agent.heard.get()
        assert (said.resumes, said.no_resume, said.resume_test_failed) == (
            *(False, "seeded: differs"),
            True,
        )
        registration.resume_known("", False)
        said = await agent.heard.get()
        assert (said.resumes, said.no_resume, said.resume_test_failed) == (True, "", False)
        telling.cancel()
    await server.stop(None)
