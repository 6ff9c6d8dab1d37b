"""One replica process per engine, shared by the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.lora_adapters import random_adapter
from tests.fakes.replica_agent import ReplicaAgent, replica_agent
from tests.fakes.replica_process import ReplicaProcess, inference_stub, running_replica

_ENGINES = {
    "simulated": ("--model", "m", "--engine-arg", "tokens_per_second=500"),
    "vllm": ("--model", "penstock-mini"),
}
_ADAPTERS = ("--adapter", "pirate@1=penstock-mini/pirate", "--max-adapters", "2")


@pytest.fixture(scope="session", params=["simulated", pytest.param("vllm", marks=pytest.mark.vllm)])
def replica(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicaProcess]:
    """A ready replica with one adapter in two slots, on each engine in turn."""
    log = tmp_path_factory.mktemp("replica") / "log"
    arguments = ("--engine", request.param, *_ENGINES[request.param], *_ADAPTERS)
    with replica_agent() as agent:
        for seed, name in enumerate(("one@1", "two@1", "three@1", "late@1")):
            directory = tmp_path_factory.mktemp("content") / name
            agent.offer(name, random_adapter(directory, seed), directory)
        with running_replica(log, *arguments, within=170, agent=agent) as process:
            yield process


@pytest.fixture
def agent(replica: ReplicaProcess) -> ReplicaAgent:
    """The replica's agent; it has the contents of four adapters more."""
    assert replica.agent is not None
    return replica.agent


@pytest.fixture
def stub(replica: ReplicaProcess) -> Iterator[Any]:
    """A client of the replica."""
    with inference_stub(replica.address) as client:
        yield client
