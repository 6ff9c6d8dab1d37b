"""Patterns that move KV between real engines: what they answer is what one engine answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.engine_cycles import filled
from tests.e2e.moved_context import (
    PROGRAMS,
    Json,
    Said,
    ask,
    at_rest,
    beside,
    runs,
    sets,
    switched,
)
from tests.e2e.system import System

WORDS = ("river", "stone", "cloud", "ember", "winter", "garden", "mirror", "copper", "lantern")
TO_FIRST = """
USES = {"migrate"}


async def route(request, engines, stats):
    await engines[1].migrate(request, engines[0])
    return RouteDecision(engines[0])
"""
TO_SECOND = TO_FIRST.replace("engines[1]", "engines[9]").replace("[0]", "[1]").replace("[9]", "[0]")
MOVERS = [name for name in PROGRAMS if "prefill" in name]


@pytest.fixture(scope="module")
def pair(shared_real: System) -> Iterator[System]:
    """Two engines of the default model, one of each role."""
    filled(shared_real)
    fields: Json = {"model": "penstock-mini", "replicas": 2, "max_adapters": 2}
    with beside(shared_real, **fields, roles={"prefill": 1, "decode": 1}):
        shared_real.change("PUT", "aliases/chat/pirate", {"target": "pirate@1"})
        yield shared_real


def _prompt(seed: int, words: int) -> str:
    """One that no other test asks: so many words."""
    chance = random.Random(seed)
    return f"Story {seed}: " + " ".join(chance.choices(WORDS, k=words))


def _plainly(system: System, prompt: str, **fields: Any) -> Said:
    """As one engine answers by itself."""
    sets(system, selection_policy="power_of_two")
    return ask(system, prompt, **fields)


@pytest.mark.vllm
@pytest.mark.parametrize("name", MOVERS)
def test_an_answer_is_token_for_token_that_of_one_engine(pair: System, name: str) -> None:
    switched(pair, name)
    kinds: tuple[Json, ...] = ({}, {"temperature": 0.8, "seed": 7}, {"model": "chat:pirate"})
    asked = [
        (_prompt(hash_of(name) + number, 100 + 100 * number), fields)
        for number, fields in enumerate(kinds)
    ]
    moved = [ask(pair, prompt, **fields) for prompt, fields in asked]
    alone = [_plainly(pair, prompt, **fields) for prompt, fields in asked]
    assert [(a.text, a.finish, a.prompt) for a in moved] == [
        (a.text, a.finish, a.prompt) for a in alone
    ]
    assert all(a.moved for a in moved), moved
    assert not any(a.cached for a in moved), "what was moved is not what was cached before"
    at_rest(pair)


@pytest.mark.vllm
def test_a_second_request_moves_only_what_is_new(pair: System) -> None:
    switched(pair, "prefill_decode")
    prompt = _prompt(500, 200)
    first = ask(pair, prompt)
    second = ask(pair, prompt + " and then " + _prompt(501, 60))
    assert 0 < second.moved < first.moved
    assert second.cached >= first.moved


@pytest.mark.vllm
def test_a_context_that_was_moved_is_found_by_a_plain_request(pair: System) -> None:
    prompt = _prompt(700, 200)
    runs(pair, TO_FIRST.replace("await", "#"))
    first = ask(pair, prompt)
    runs(pair, TO_SECOND)
    moving = ask(pair, prompt)
    runs(pair, TO_SECOND.replace("await", "#"))
    plain = ask(pair, prompt)
    assert (first.cached, moving.cached, plain.moved) == (0, 0, 0)
    assert moving.moved == plain.cached >= plain.prompt - 64
    assert first.text == moving.text == plain.text
    at_rest(pair)


def hash_of(name: str) -> int:
    """The same number for a name in every process."""
    return sum(name.encode()) * 1000
