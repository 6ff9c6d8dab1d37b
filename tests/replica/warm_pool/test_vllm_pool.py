"""A pool of the real engine: its members answer as replicas do that were started."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.v1 import inference_pb2
from tests.fakes.replica_agent import ReplicaAgent
from tests.fakes.replica_process import ReplicaProcess, answer_of, inference_stub, load_when
from tests.fakes.warm_pool import Pool, await_gone, command

pytestmark = [pytest.mark.vllm, pytest.mark.processes, pytest.mark.timeout(300)]

_WORDS = ("--engine", "vllm", "--model", "penstock-mini", "--engine-arg", "cpu_kvcache_gib=0.25")
_ADAPTERS = ("--adapter", "pirate@1=penstock-mini/pirate", "--max-adapters", "2")
_SPLIT = ("--engine-arg", "tensor_parallel_size=2")
_BOUND = {"VLLM_CPU_OMP_THREADS_BIND": "0|1"}  # a core for each worker
_READY_S = 120


@pytest.fixture(scope="module")
def shared(vllm_pool: Pool) -> Pool:
    return vllm_pool


def _claimed(
    pool: Pool, agent: ReplicaAgent, log: Path, *more: str, env: Mapping[str, str] | None = None
) -> tuple[psutil.Process, Any]:
    """A member that has become a replica, and what it said when it was ready."""
    pool.have(1)
    member = pool.member()
    who = ("--replica-id", "r1", "--deployment", "test-model", "--agent", agent.address)
    argv = command(*who, *_WORDS, *more)
    assert not member.why_cold(argv)
    member.become(argv, log, env)
    return psutil.Process(member.pid), agent.heard_when(lambda said: said.capacity, _READY_S)


def _answers(address: str, adapter: str = "") -> tuple[str, str, list[Any]]:
    """What tells an engine from others, and what it answers, with log probabilities."""
    choices = []
    with inference_stub(address) as stub:
        load = load_when(stub, lambda load: load.config_hash)
        for start in ("The story begins", "A gateway is", "1, 2, 3,"):
            asked = {"prompt": start, "max_tokens": 16, "temperature": 0, "logprobs": 1}
            request = inference_pb2.CallRequest(
                request_id=start[:1],
                method="POST",
                path="/v1/completions",
                model="test-model",
                body=json.dumps({"model": "test-model", **asked}).encode(),
                adapter=adapter,
            )
            events = list(stub.Call(request, timeout=60))
            version = events[-1].finished.model_version
            assert version
            choices += json.loads(answer_of(events))["choices"]
    return load.config_hash, version, choices


def _program(pid: int) -> str:
    """Where the kernel put its program, which differs from exec to exec, not from fork to fork."""
    return Path(f"/proc/{pid}/maps").read_text().split("-", 1)[0]


def _imported(log: Path) -> set[str]:
    """The packages that the processes of a log have imported parts of since they were forked."""
    names = re.findall(r"^import time:.*\| +(\S+)$", log.read_text(), re.MULTILINE)
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    ("more", "env"),
    [
        pytest.param(_ADAPTERS, {}, id="adapters"),
        pytest.param(_SPLIT, _BOUND, id="split", marks=pytest.mark.long),
        pytest.param(("--engine-arg", "cpu_threads=2"), {}, id="threads", marks=pytest.mark.long),
    ],
)
def test_a_member_answers_as_a_replica_that_was_started(
    pool: Pool, agent: ReplicaAgent, tmp_path: Path, more: tuple[str, ...], env: Mapping[str, str]
) -> None:
    adapter = "pirate@1" if more is _ADAPTERS else ""
    process, said = _claimed(pool, agent, tmp_path / "warm.log", *more, env=env)
    warm = _answers(said.address), _answers(said.address, adapter)
    stages = [stage.name for stage in said.stages]
    assert stages == ["claim", "config", "load", "app", "adapters", "warm_up"]
    anew = _imported(tmp_path / "warm.log")
    assert "penstock" in anew, "what each process has to"
    assert not anew & {"vllm", "torch", "transformers"}
    agent.heard_when(lambda said: said.resumes, _READY_S)
    engines = process.children(recursive=True)
    process.terminate()
    assert pool.told() == {"ended": process.pid, "status": 0}
    await_gone([one.pid for one in engines])
    cold = ReplicaProcess(tmp_path / "cold.log", *_WORDS, *more, "--agent", agent.address, env=env)
    try:
        said = agent.heard_when(lambda said: said.capacity, _READY_S)
        stages = [stage.name for stage in said.stages]
        assert stages == ["spawn", "import", "config", "load", "app", "adapters", "warm_up"]
        assert (_answers(said.address), _answers(said.address, adapter)) == warm
    finally:
        cold.close()


def test_two_workers_are_forks_as_well_and_end_with_a_member_that_is_killed(
    pool: Pool, agent: ReplicaAgent, tmp_path: Path
) -> None:
    process, said = _claimed(pool, agent, tmp_path / "warm.log", *_SPLIT, env=_BOUND)
    below = process.children(recursive=True)
    assert len([one for one in below if "Worker" in " ".join(one.cmdline())]) == 2
    forks = [one for one in below if "resource_tracker" not in " ".join(one.cmdline())]
    assert {_program(one.pid) for one in (process, *forks)} == {_program(pool.process.pid)}
    assert _answers(said.address)
    process.kill()
    assert pool.told() == {"ended": process.pid, "status": -signal.SIGKILL}
    await_gone([one.pid for one in below])


def test_a_member_says_what_it_cannot_become(pool: Pool) -> None:
    pool.have(1)
    member = pool.member()
    who = ("--replica-id", "r1", "--deployment", "d", *_WORDS)
    for more, told in (
        (("--engine-arg", "enforce_eager=false"), "engine setting enforce_eager: it may compile"),
        (("--engine-arg", "port=1"), "engine setting port: the replica sets this itself"),
        (("--model", "./no-such-model"), "model ./no-such-model: there is no directory"),
    ):
        assert member.why_cold(command(*who, *more)).startswith(told)
    assert not member.why_cold(command(*who))
    os.kill(member.pid, signal.SIGKILL)
    assert pool.told() == {"ended": member.pid, "status": -signal.SIGKILL}
