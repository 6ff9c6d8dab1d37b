"""A pool of the simulated engine: what its zygote tells, and how its processes live and end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fakes.replica_agent import ReplicaAgent
from tests.fakes.replica_process import chat_request, inference_stub
from tests.fakes.warm_pool import Pool, Waiting, await_gone, command, gone, running_pool

pytestmark = pytest.mark.processes

_WORDS = ("--replica-id", "r1", "--deployment", "test-model", "--engine", "simulated")
_MODEL = ("--model", "tiny")


def descriptors(pid: int) -> dict[int, str]:
    """What a process has open."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "replica.log"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    log = tmp_path_factory.mktemp("pool") / "warm-pool.log"
    with running_pool("simulated", log) as (pool, said):
        assert (said["vllm"], said["device"]) == ("", "none")
        assert said["ms"] > 0
        yield pool


def _claim(member: Waiting, log: Path, agent: ReplicaAgent, *more: str) -> list[str]:
    argv = command(*_WORDS, *_MODEL, "--agent", agent.address, *more)
    assert not member.why_cold(argv)
    member.become(argv, log, {"PENSTOCK_REPLICA_TOKEN": "r1:own-secret"})
    return argv


def test_a_claimed_member_is_a_replica_as_any_other(
    pool: Pool, agent: ReplicaAgent, log: Path
) -> None:
    pool.have(1)
    member = pool.member()
    argv = _claim(member, log, agent, "--engine-arg", "answer_tokens=3")
    first, second = agent.heard.get(timeout=20), agent.heard.get(timeout=20)
    assert first.pid == second.pid == member.pid
    assert [stage.name for stage in first.stages] == ["claim"]
    with inference_stub(second.address) as stub:
        assert list(stub.Call(chat_request("Hello"), timeout=10))[-1].HasField("finished")
    process = psutil.Process(member.pid)
    assert [word for word in process.cmdline() if word] == argv
    assert process.name() == Path(sys.executable).name
    assert os.getpgid(member.pid) == member.pid
    assert set(agent.shown) == {"Bearer r1:own-secret"}
    assert '"message": "ready"' in log.read_text()
    process.terminate()
    assert pool.told() == {"ended": member.pid, "status": 0}


def test_a_member_waits_on_after_what_it_cannot_be(
    pool: Pool, agent: ReplicaAgent, log: Path
) -> None:
    pool.have(1)
    member = pool.member()
    other = ("--replica-id", "r1", "--deployment", "d", "--engine", "canned", *_MODEL)
    assert (
        member.why_cold(command(*other)) == "its engine is canned, the pool has imported simulated"
    )
    assert "longer than 16 KiB" in member.why_cold(command(*_WORDS, "--model", "x" * (16 << 10)))
    assert "--no-such-flag" in member.why_cold(command(*_WORDS, *_MODEL, "--no-such-flag"))
    assert "no replica's" in member.why_cold(["sh", "-c", "true"])
    _claim(member, log, agent)
    assert agent.heard_when(lambda said: said.capacity).pid == member.pid


def test_settings_that_are_wrong_end_a_claimed_member_as_any_replica(pool: Pool, log: Path) -> None:
    pool.have(1)
    member = pool.member()
    argv = command(*_WORDS, *_MODEL, "--engine-arg", "ttft_ms=soon")
    assert not member.why_cold(argv)
    member.become(argv, log)
    assert pool.told() == {"ended": member.pid, "status": 72}
    assert log.read_text().splitlines()[-1].startswith("penstock-replica: error: ")


def test_members_come_and_go_until_as_many_wait_as_are_wanted(
    pool: Pool, agent: ReplicaAgent, log: Path
) -> None:
    pool.have(2)
    claimed, waiting = pool.member(), pool.member()
    _claim(claimed, log, agent)
    pool.have(2)  # the claimed one does not count
    another = pool.member()
    assert len({claimed.pid, waiting.pid, another.pid}) == 3
    pool.have(0)
    ended = {pool.told()["ended"], pool.told()["ended"]}
    assert ended == {waiting.pid, another.pid}
    assert not gone(claimed.pid)


def test_a_waiting_member_has_its_socket_and_nothing_else_of_the_zygote(pool: Pool) -> None:
    pool.have(2)
    for member in (pool.member(), pool.member()):
        assert member.why_cold(command()) != ""  # it has come so far
        held = descriptors(member.pid)
        assert {*held} - {0, 1, 2} == {n for n, what in held.items() if what.startswith("socket:")}
        assert len(held) == 4
        assert os.getpgid(member.pid) == member.pid


def test_a_claimed_member_has_what_a_cold_replica_has(
    pool: Pool, agent: ReplicaAgent, log: Path
) -> None:
    pool.have(2)
    member, other = pool.member(), pool.member()
    before = {*descriptors(member.pid).values()} | {*descriptors(other.pid).values()}
    _claim(member, log, agent)
    agent.heard_when(lambda said: said.capacity)
    held = descriptors(member.pid)
    assert (held[0], held[1], held[2]) == ("/dev/null", str(log), str(log))
    assert not {what for what in held.values() if what.startswith("socket:")} & before


def test_a_member_ends_with_its_agents_end_of_the_socket(pool: Pool) -> None:
    pool.have(1)
    member = pool.member()
    member.channel.close()
    assert pool.told() == {"ended": member.pid, "status": 0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_waiting_member_ends_by_any_signal_and_is_told_of(
    pool: Pool, number: signal.Signals
) -> None:
    pool.have(1)
    member = pool.member()
    assert member.why_cold(command()) != ""
    os.kill(member.pid, number)
    assert pool.told() == {"ended": member.pid, "status": -number}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_those_that_wait_end_with_their_zygote_and_claimed_ones_live_on(
    agent: ReplicaAgent, tmp_path: Path, number: signal.Signals
) -> None:
    with running_pool("simulated", tmp_path / "warm-pool.log") as (pool, _):
        pool.have(2)
        claimed, waiting = pool.member(), pool.member()
        _claim(claimed, tmp_path / "replica.log", agent)
        try:
            address = agent.heard_when(lambda said: said.capacity).address
            pool.process.send_signal(number)
            assert pool.process.wait(10) == -number
            await_gone([waiting.pid])
            with inference_stub(address) as stub:
                assert list(stub.Call(chat_request("Hi"), timeout=10))[-1].HasField("finished")
        finally:
            os.kill(claimed.pid, signal.SIGTERM)
        await_gone([claimed.pid])


def test_the_pool_ends_with_its_agent_also_while_it_imports(tmp_path: Path) -> None:
    importing = Pool("simulated", tmp_path / "warm-pool.log")
    importing.close()
    with running_pool("simulated", tmp_path / "warm-pool.log") as (pool, _):
        pool.have(1)
        member = pool.member()
    assert (importing.process.returncode, pool.process.returncode) == (0, 0)
    await_gone([member.pid])


def test_two_forks_draw_different_numbers_when_told_to() -> None:
    program = (
        "import os, random, numpy\n"
        "from penstock.replica.warm_pool.process import forget_randomness\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        forget_randomness()\n"
        "        print(random.random(), numpy.random.random(), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    one, other = (line.split() for line in done.stdout.splitlines())
    assert not set(one) & set(other)
