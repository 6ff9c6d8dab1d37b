"""Adapters on real vLLM, more than there is room for: every answer from its own weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.adapter_traffic import ask, client_of, made, own_words, register, traffic
from tests.e2e.system import System

MODEL = "penstock-mini"
MINE = [f"own{number}@1" for number in range(1, 7)]
SHIPPED = {"pirate": "pirate@1", "json": "json@1"}


@pytest.fixture
def real(shared_real: System, folder: Path) -> Iterator[System]:
    """A system with four slots, two of them pinned, and six adapters of the test's own."""
    _pin(shared_real, pinned=True)
    for name in MINE:
        register(shared_real, MODEL, name, made(folder, name))
    yield shared_real
    for name in MINE:
        shared_real.change("DELETE", f"adapters/{name}")
    _pin(shared_real, pinned=False)


def _pin(system: System, *, pinned: bool) -> None:
    for alias, target in SHIPPED.items():
        system.change("PUT", f"aliases/{MODEL}/{alias}", {"target": target, "pinned": pinned})


def _replica(system: System) -> dict[str, Any]:
    (replica,) = (each for each in system.replicas() if each["deployment"] == MODEL)
    return replica


@pytest.mark.vllm
async def test_eight_adapters_over_two_free_slots_all_answer_from_their_own_weights(
    real: System,
) -> None:
    """Six adapters take turns in the slots that are not pinned, beside the base."""
    before = _replica(real)["pid"]
    names = [*SHIPPED.values(), *MINE]
    async with client_of(real) as client:
        words = await own_words(client, MODEL, names)
        base = (await ask(client, MODEL)).text
        assert base not in words.values()
        models = [MODEL, *(f"{MODEL}:{name}" for name in names)]
        async with traffic(client, models, per_second=12) as found:
            await found.more(90)
        assert [a for a in found.answers if a.status != 200] == []
        assert [a for a in found.answers if a.text != words.get(a.version, base)] == []
        assert {a.version for a in found.answers} == {"", *names}
        assert (await ask(client, f"{MODEL}:pirate")).text == words["pirate@1"]
    replica = _replica(real)
    assert replica["pid"] == before
    assert set(SHIPPED.values()) <= set(replica["adapters"])
    assert len(replica["adapters"]) <= 4
