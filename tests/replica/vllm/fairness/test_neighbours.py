"""Tenants beside each other in one real engine, one of them with hundreds of sequences."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.fairness.gate import Gate
from penstock.replica.vllm.fairness.seats import Seats
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from tests.replica.vllm.talking import (
    COMPLETIONS,
    ON_THE_SHARED_ENGINE,
    ask,
    body,
    call,
    chat,
    until,
)

pytestmark = ON_THE_SHARED_ENGINE

_SEATS = 16
"""A tenant's, with another about; also the most choices of a request."""


@pytest.fixture
def _no_seat_more(engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate of the test's own, which hears of no steps, and so never gives a tenant more seats."""
    gate, launched = Gate(Seats(64), time.monotonic), engine.launched
    monkeypatch.setattr(launched.llm, "gate", gate)
    monkeypatch.setattr(launched.gauges, "held", gate.held)


@asynccontextmanager
async def _filled(engine: VllmEngine, tokens: int) -> AsyncIterator[None]:
    """While a rude tenant's request has all its seats, and only its first output has been read."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    await ask(engine, chat(max_tokens=1), tenant="polite")
    params = SamplingParams(n=_SEATS, max_tokens=tokens, ignore_eos=True)
    params.output_kind = RequestOutputKind.DELTA
    token = CURRENT.set(CallTap(call(b"", tenant="rude")))
    try:
        unread: Any = engine.launched.llm.generate({"prompt_token_ids": [9]}, params, "unread")
        await anext(unread)
    finally:
        CURRENT.reset(token)
    try:
        yield
    finally:
        await unread.aclose()


async def test_a_call_of_many_sequences_is_answered_whole_and_a_neighbours_goes_first(
    engine: VllmEngine,
) -> None:
    await ask(engine, chat(max_tokens=1), tenant="polite")
    many = body(prompt=["Lock"] * 16, n=_SEATS, temperature=1, max_tokens=16, ignore_eos=True)
    async with asyncio.TaskGroup() as tasks:
        rude = tasks.create_task(ask(engine, many, COMPLETIONS, tenant="rude"))
        await until(lambda: engine.load().waiting > 0, "some of it waits")
        assert (await ask(engine, chat(max_tokens=2), tenant="polite")).finished
        assert not rude.done()
    answer = rude.result()
    assert [one["index"] for one in answer.json["choices"]] == list(range(_SEATS * 16))
    assert answer.finished.completion_tokens == _SEATS * 16 * 16
    assert answer.finished.queue_us > 0, "it waited, before the engine"


@pytest.mark.usefixtures("_no_seat_more")
async def test_seats_are_free_when_the_engine_is_done_however_slowly_the_answer_is_read(
    engine: VllmEngine,
) -> None:
    async with _filled(engine, tokens=1):
        content = body(prompt="Lock", n=_SEATS, temperature=1, max_tokens=1)
        answer = await asyncio.wait_for(ask(engine, content, COMPLETIONS, tenant="rude"), 30)
    assert len(answer.json["choices"]) == _SEATS


@pytest.mark.usefixtures("_no_seat_more")
async def test_what_waits_before_the_engine_is_told_as_waiting_and_leaves_nothing(
    engine: VllmEngine,
) -> None:
    async with _filled(engine, tokens=2000):
        async with asyncio.TaskGroup() as tasks:
            content = body(prompt="Lock", n=3, temperature=1)
            waiting = tasks.create_task(ask(engine, content, COMPLETIONS, tenant="rude"))
            await until(lambda: engine.load().waiting == 3, "it waits")
            assert engine.load().waiting_tokens > 3
            waiting.cancel()
        assert engine.load().waiting == 0
    await ask(engine, chat(max_tokens=2))
    await until(lambda: engine.load().running == 0, "the engine runs nothing")
