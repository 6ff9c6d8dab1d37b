"""One replica process per engine, shared by the whole suite."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.fakes import bedrock_server, openai_server
from tests.fakes.contract_engines import ALL, MOVING
from tests.fakes.lora_adapters import random_adapter
from tests.fakes.movers import Movers, mover
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replica_agent import ReplicaAgent, replica_agent
from tests.fakes.replica_process import ReplicaProcess, inference_stub, running_replica

_ADAPTERS = ("--adapter", "pirate@1=penstock-mini/pirate", "--max-adapters", "2")
_TEXT = " ".join(f"word{number}" for number in range(640))


@contextlib.contextmanager
def _engine(name: str) -> Iterator[tuple[str, ...]]:
    """The arguments by which a replica has this engine, and what that engine needs."""
    model = {
        "simulated": ("--model", "m", "--engine-arg", "tokens_per_second=500", *_ADAPTERS),
        "vllm": ("--model", "penstock-mini", *_ADAPTERS),
        "canned": ("--model", "sorry", "--engine-arg", f"text={_TEXT}", *_CONTEXT),
    }
    if name == "bedrock":
        with ProviderServer(bedrock_server.usual(pace=0.002)) as server, _aws_keys():
            settings = (f"endpoint_url={server.url}", f"region={bedrock_server.REGION}")
            words = [word for one in settings for word in ("--engine-arg", one)]
            yield ("--engine", name, "--model", bedrock_server.MODEL, *words)
    elif name == "openai":
        with ProviderServer(openai_server.usual(pace=0.002)) as server:
            base_url = f"base_url={server.url}/v1"
            yield ("--engine", name, "--model", "gpt-fake", "--engine-arg", base_url)
    else:
        yield ("--engine", name, *model[name])


@contextlib.contextmanager
def _aws_keys() -> Iterator[None]:
    """The credentials that the local Bedrock knows, in the environment that replicas inherit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", bedrock_server.KEY_ID)
        patch.setenv("AWS_SECRET_ACCESS_KEY", bedrock_server.SECRET)
        yield


_CONTEXT = ("--engine-arg", "max_model_len=4096")


@pytest.fixture(scope="session", params=ALL)
def replica(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicaProcess]:
    """A ready replica on each engine in turn; with one adapter in two slots where it takes any."""
    log = tmp_path_factory.mktemp("replica") / "log"
    pool = request.getfixturevalue("vllm_pool") if request.param == "vllm" else None
    with replica_agent() as agent, _engine(request.param) as arguments:
        for seed, name in enumerate(("one@1", "two@1", "three@1", "late@1")):
            directory = tmp_path_factory.mktemp("content") / name
            agent.offer(name, random_adapter(directory, seed), directory)
        with running_replica(log, *arguments, within=170, agent=agent, pool=pool) as process:
            started = psutil.Process(process.process.pid).children(recursive=True)
            yield process
            _ends_with(process, started)


def _ends_with(replica: ReplicaProcess, started: list[psutil.Process]) -> None:
    """It ends, unless a test has told it to, and so does all that it started."""
    if replica.process.poll() is None:
        replica.signal(signal.SIGTERM)
    assert replica.ended(within=20).code == 0
    deadline = time.monotonic() + 5
    while left := [process for process in started if _lives(process)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


@pytest.fixture(scope="session", params=MOVING)
def movers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Movers]:
    """Two ready replicas of one model that move KV, on each engine in turn; those with vLLM are
    claimed from a warm pool."""
    logs = tmp_path_factory.mktemp("movers")
    pool = request.getfixturevalue("vllm_pool") if request.param == "vllm" else None
    arguments = (*_MOVING[request.param], "--microserving")
    with contextlib.ExitStack() as stack:
        ends = []
        for name in ("one", "two"):
            agent = stack.enter_context(replica_agent())
            more: dict[str, Any] = {"within": 170, "agent": agent, "pool": pool}
            process = stack.enter_context(running_replica(logs / name, *arguments, **more))
            ends.append(stack.enter_context(mover(process)))
        yield Movers(*ends)


_MOVING = {
    "simulated": ("--engine", "simulated", "--model", "m", "--engine-arg", "kv_blocks=400"),
    "vllm": (
        *("--engine", "vllm", "--model", "penstock-mini", *_ADAPTERS),
        *("--engine-arg", "cpu_kvcache_gib=0.1", "--engine-arg", "max_num_batched_tokens=256"),
    ),
}


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
