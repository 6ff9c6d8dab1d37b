"""Answers of every kind that are cut and gone on with, on a real engine."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.replica.calls.answers import EventSink
from penstock.replica.values import Call
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.fairness.seats import Ticket
from tests.replica.vllm.resume.cutting import Stream, checked, gone_on, streamed
from tests.replica.vllm.resume.kinds import KINDS, call
from tests.replica.vllm.talking import CHAT, ON_THE_SHARED_ENGINE, SERVED, until

pytestmark = ON_THE_SHARED_ENGINE


async def _tested(engine: VllmEngine) -> None:
    await until(lambda: engine.no_resume() is not None, "the self-test is over")
    assert engine.no_resume() == ""


def _some(whole: Stream, seed: str) -> Sequence[int]:
    """The first chunk, one of the middle, and one of what comes at the end."""
    count = len(whole.chunks)
    middle = random.Random(seed).randint(1, count)
    return sorted({1, middle, max(1, count - 2)})


async def _cut_at(engine: VllmEngine, asked: Call, whole: Stream, cuts: Sequence[int]) -> None:
    rests = await asyncio.gather(*(gone_on(engine, asked, whole, cut) for cut in cuts))
    for cut, rest in zip(cuts, rests, strict=True):
        checked(whole, cut, rest)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_goes_on_as_if_nothing_had_been(engine: VllmEngine, kind: str) -> None:
    await _tested(engine)
    asked = call(kind, f"cut-{kind.replace(' ', '-')}")
    whole = await streamed(engine, asked)
    assert whole.finished
    assert whole.head.resumable
    await _cut_at(engine, asked, whole, _some(whole, kind))


@pytest.mark.parametrize("kind", ["greedy", "seeded", "schema", "prompts"])
async def test_an_adapters_answer_goes_on(engine: VllmEngine, kind: str) -> None:
    await _tested(engine)
    asked = call(kind, f"adapter-{kind}", adapter="pirate@1")
    whole = await streamed(engine, asked)
    assert whole.finished.adapter == "pirate@1"
    await _cut_at(engine, asked, whole, _some(whole, kind))


@pytest.mark.parametrize("kind", ["greedy", "seeded", "penalties", "schema", "logprobs"])
async def test_an_answer_that_goes_on_is_preempted_as_any_other(
    engine: VllmEngine, kind: str
) -> None:
    await _tested(engine)
    asked = call(kind, f"preempted-{kind}")
    whole = await streamed(engine, asked)
    llm = engine.launched.llm
    before = engine.load().preemptions

    async def preempt() -> None:
        while True:
            await llm.reset_prefix_cache(reset_running_requests=True)
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        preempting = tasks.create_task(preempt())
        for cut in _some(whole, kind):
            checked(whole, cut, await gone_on(engine, asked, whole, cut))
        preempting.cancel()
    assert engine.load().preemptions > before


async def test_without_a_seed_it_goes_on_after_the_same_words(engine: VllmEngine) -> None:
    await _tested(engine)
    body = {"messages": [{"role": "user", "content": "Count from 1."}], "temperature": 1.0}
    more = {"max_tokens": 40, "ignore_eos": True, "stream": True, "logprobs": True}
    asked = Call("unseeded", CHAT, json.dumps(body | more).encode(), SERVED)
    whole = await streamed(engine, asked)
    rest = await gone_on(engine, asked, whole, len(whole.chunks) // 2)
    got = whole.with_rest(len(whole.chunks) // 2, rest)
    ids = [one for chunk in got.chunks for group in chunk.groups for one in group.token_ids]
    assert (len(ids), rest.finished.completion_tokens) == (40, 40)
    assert got.body.endswith(b"data: [DONE]\n\n")


async def test_an_answer_keeps_the_moment_at_which_it_began(engine: VllmEngine) -> None:
    await _tested(engine)
    for kind, field in (
        ("greedy", "created"),
        ("completion", "created"),
        ("response", "created_at"),
    ):
        asked = call(kind, f"moment-{kind}")
        whole = await streamed(engine, asked)
        assert f'"{field}":{whole.head.created},'.encode() in whole.body
        resume = replace(whole.resume(1), created=1_700_000_000)
        rest = await streamed(engine, replace(asked, resume=resume))
        assert rest.head.created == 1_700_000_000
        assert f'"{field}":1700000000,'.encode() in rest.body
        assert f'"{field}":{whole.head.created},'.encode() not in rest.body


async def test_replayed_tokens_are_not_counted_as_made(engine: VllmEngine) -> None:
    await _tested(engine)
    asked = call("long", "counted")
    whole = await streamed(engine, asked)
    cut = len(whole.chunks) // 2
    had = sum(chunk.tokens for chunk in whole.chunks[:cut])
    before = engine.load().tokens
    rest = await gone_on(engine, asked, whole, cut)
    made = whole.finished.completion_tokens - had
    assert sum(chunk.tokens for chunk in rest.chunks) == made
    assert engine.load().tokens - before == made
    assert rest.finished.completion_tokens == whole.finished.completion_tokens


async def test_what_has_ended_is_not_asked_of_the_engine(engine: VllmEngine) -> None:
    await _tested(engine)
    for kind in ("greedy", "three choices", "prompts"):
        asked = call(kind, f"ended-{kind.replace(' ', '-')}")
        whole = await streamed(engine, asked)
        before = engine.load()
        for left in (0, 1, 2):
            cut = len(whole.chunks) - left
            checked(whole, cut, await gone_on(engine, asked, whole, cut))
        after = engine.load()
        assert (after.tokens, after.prompt_tokens) == (before.tokens, before.prompt_tokens)
        assert after.prefix_queries == before.prefix_queries


async def test_its_ticket_has_prompt_and_delivered_tokens(
    engine: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _tested(engine)
    asked = call("long", "ticket")
    whole = await streamed(engine, asked)
    gate, tickets = engine.launched.llm.gate, []
    passed = gate.passed

    def seen(ticket: Ticket) -> Any:
        tickets.append(ticket)
        return passed(ticket)

    monkeypatch.setattr(gate, "passed", seen)
    cut = len(whole.chunks) // 2
    await gone_on(engine, asked, whole, cut)
    had = sum(chunk.tokens for chunk in whole.chunks[:cut])
    assert [ticket.tokens for ticket in tickets] == [whole.finished.prompt_tokens + had]
    # What has ended needs no seat.
    await gone_on(engine, asked, whole, len(whole.chunks))
    assert len(tickets) == 1


async def test_a_client_that_leaves_while_it_is_replayed_leaves_nothing_behind(
    engine: VllmEngine,
) -> None:
    await _tested(engine)
    states = engine.launched.llm.output_processor.request_states
    for kind in ("long", "three choices", "prompts"):
        asked = call(kind, f"left-{kind.replace(' ', '-')}")
        whole = await streamed(engine, asked)
        resumed = replace(asked, token_groups=True, resume=whole.resume(len(whole.chunks) - 4))
        for turns in range(12):
            sink = EventSink()
            async with asyncio.TaskGroup() as tasks:
                answer = tasks.create_task(engine.answer(resumed, sink))
                while not states and not answer.done():
                    await asyncio.sleep(0)
                for _ in range(turns):
                    await asyncio.sleep(0)
                sink.leave(answer)
            await until(lambda: not states, "all is gone")
        checked(whole, 2, await gone_on(engine, asked, whole, 2))
