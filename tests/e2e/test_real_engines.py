"""Engines on real vLLM out of the warm pool: none is lost, none answers with another's weights."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.engine_cycles import (
    MINI,
    Engines,
    filled,
    killed,
    other_model,
    pool_processes,
    proportional,
)
from tests.e2e.rollouts import sessions
from tests.e2e.system import System, eventually, running

log = logging.getLogger(__name__)
FLAT = 0.02  # of the pool's memory after its first rounds


@pytest.fixture(scope="module")
def warm(folder: Path) -> Iterator[System]:
    """A pool of one member that is full."""
    simulated = ("--engine", "simulated", "--name", "sim")
    with running(folder, "--warm", "1", *simulated, within=60) as system:
        filled(system)
        yield system


@pytest.fixture
def engines(warm: System) -> Iterator[Engines]:
    """Its Engines API; whatever a test leaves behind is ended."""
    with closing(Engines(warm)) as api:
        yield api


@pytest.mark.vllm
@pytest.mark.timeout(400)
def test_engines_that_are_claimed_and_given_back_leave_the_pool_full(shared_real: System) -> None:
    filled(shared_real)
    with closing(Engines(shared_real)) as engines:
        _cycles(shared_real, engines, rounds=3, kill_every=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_claims_with_kills_between_lose_no_slot_and_no_memory(
    warm: System, engines: Engines
) -> None:
    taken = _cycles(warm, engines, rounds=100, kill_every=5)[2:]  # after the first ten
    early, late = sum(taken[:4]) / 4, sum(taken[-4:]) / 4  # each with one kill of each kind
    log.warning("the pool takes %.1f MiB, then %.1f MiB", early / 2**20, late / 2**20)
    assert abs(late - early) < FLAT * early


def _cycles(system: System, engines: Engines, *, rounds: int, kill_every: int) -> list[int]:
    """Claims, asks, gives back, and kills one after the other between; bytes of the pool then.

    Every engine answers as the first does, and the pool is full again after each kill.
    """
    expected = ""
    victims = itertools.cycle(_victims(system))
    taken = []
    for number in range(rounds):
        engine = engines.start(MINI, name=f"round-{number}")
        assert engine["start"] == "warm", system.output()
        said = engines.says(engine["name"])
        expected = expected or said
        assert said == expected
        if number % kill_every == kill_every - 1:
            name, victim = next(victims)
            log.warning("round %d: kill -9 of %s", number, name)
            victim(engine["name"])
        engines.stop(engine)
        if number % kill_every == kill_every - 1:
            filled(system)
            taken.append(proportional(pool_processes(system)))
    return taken


def _victims(system: System) -> list[tuple[str, Callable[[str], None]]]:
    """What is killed by turns."""

    def zygote(_: str) -> None:
        agent = system.pid_of("node")
        killed(each for each in pool_processes(system) if each.ppid() == agent)

    def members(_: str) -> None:
        agent = system.pid_of("node")
        killed(each for each in pool_processes(system) if each.ppid() != agent)

    def agent(_: str) -> None:
        before = system.pid_of("node")
        system.kill(before)

        def others() -> list[psutil.Process]:
            return [p for p in system.processes("penstock", " node ") if p.pid != before]

        eventually(others, within=20, what="another agent")

    def engine(name: str) -> None:
        (replica,) = (each for each in system.replicas() if each["deployment"] == name)
        killed([psutil.Process(replica["pid"])])

    return [
        ("members that wait", members),
        ("the claimed engine", engine),
        ("the zygote", zygote),
        ("the agent", agent),
    ]


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_two_models_by_turns_out_of_one_pool_never_answer_for_each_other(
    warm: System, engines: Engines, folder: Path
) -> None:
    """For 200 rounds, beside the traffic of others."""
    await _turns(warm, engines, folder, rounds=200)


async def _turns(system: System, engines: Engines, folder: Path, *, rounds: int) -> None:
    other = str(other_model(folder))
    expected = _said_cold(folder, MINI, "mini", {"pirate": "pirate@1"})
    expected |= _said_cold(folder, other, "other", {})
    assert len(set(expected.values())) == 3
    kinds: dict[str, dict[str, Any]] = {
        "mini": {"model": MINI, "adapters": ["pirate@1"]},
        "other": {
            "model": other,
            "engine_args": {"max_model_len": "512", "max_num_seqs": "4"},
        },
    }
    async with sessions(system, "sim", 2) as talking:
        for number, (kind, body) in zip(range(rounds), itertools.cycle(kinds.items())):
            engine = engines.start(name=f"turn-{number}", **body)
            name = engine["name"]
            said = {kind: engines.says(name)}
            if kind == "mini":
                said["pirate"] = engines.says(f"{name}:pirate@1")
            assert {key: expected[key] for key in said} == said, f"round {number}"
            assert engine["start"] == "warm", system.output()
            engines.stop(engine)
    assert talking.failures == []


def _said_cold(folder: Path, model: str, kind: str, adapters: dict[str, str]) -> dict[str, str]:
    """What replicas that were started cold answer: the model, and each adapter by its name."""
    place = folder / f"cold-{kind}"
    place.mkdir()
    with running(place, model, "--name", kind, "--warm", "0") as system:
        api = Engines(system)
        said = {kind: api.says(kind)}
        said |= {name: api.says(f"{kind}:{version}") for name, version in adapters.items()}
        api.close()
        return said
