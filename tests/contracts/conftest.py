"""One replica process per engine, shared by the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.replica_process import ReplicaProcess, inference_stub, running_replica

_ENGINES = {
    "simulated": ("--model", "m", "--engine-arg", "tokens_per_second=500"),
    "vllm": ("--model", "penstock-mini"),
}
_ADAPTER = ("--adapter", "pirate@1=penstock-mini/pirate")


@pytest.fixture(scope="session", params=["simulated", pytest.param("vllm", marks=pytest.mark.vllm)])
def replica(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicaProcess]:
    """A ready replica with one adapter, on each engine in turn."""
    log = tmp_path_factory.mktemp("replica") / "log"
    arguments = ("--engine", request.param, *_ENGINES[request.param], *_ADAPTER)
    with running_replica(log, *arguments, within=170) as process:
        yield process


@pytest.fixture
def stub(replica: ReplicaProcess) -> Iterator[Any]:
    """A client of the replica."""
    with inference_stub(replica.address) as client:
        yield client
