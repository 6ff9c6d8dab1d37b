"""What calls cost that were not finished, and the budgets that they have to keep to."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from penstock.replica.values import Failed, Finished, Head, TokenGroup, Usage
from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    ask,
    body,
    call,
    chat,
    long_request,
    until,
)

pytestmark = ON_THE_SHARED_ENGINE

_GENERATING = [CHAT, COMPLETIONS, RESPONSES, MESSAGES]
_LIMITS = {
    CHAT: "max_completion_tokens",
    COMPLETIONS: "max_tokens",
    RESPONSES: "max_output_tokens",
    MESSAGES: "max_tokens",
}
_PROMPTS = {CHAT: "messages", COMPLETIONS: "prompt", RESPONSES: "input", MESSAGES: "messages"}


class Ledger:
    """A sink that keeps the end and can be left; what the call cost is asked as the bridge does."""

    def __init__(self) -> None:
        self.end: Finished | Failed | None = None
        self.failed_usage: Usage | None = None
        self.usage: Any = Usage
        self.leave: Any = None

    def head(self, head: Head) -> None:
        return

    def write(
        self, body: bytes, events: int = 1, groups: tuple[TokenGroup, ...] = (), tokens: int = 0
    ) -> bool:
        return False

    async def room(self) -> None:
        return

    def finish(self, finished: Finished) -> None:
        self.end = self.end or finished

    def fail(self, failed: Failed) -> None:
        if self.end is None:
            self.end, self.failed_usage = failed, self.usage()

    def costs(self, usage: Any) -> None:
        self.usage = usage

    def when_gone(self, leave: Any) -> None:
        self.leave = leave


def _made(sink: Ledger) -> int:
    """Tokens that the engine has made for it."""
    return (sink.usage() or Usage()).completion_tokens


async def _left(engine: VllmEngine, content: bytes, path: str, *, tokens: int) -> Usage:
    """What a call has cost whose client left when so many tokens were made."""
    sink = Ledger()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.answer(call(content, path), sink))
        await until(lambda: _made(sink) >= tokens, "the tokens are made")
        sink.leave()
    usage: Usage = sink.usage()
    return usage


@pytest.mark.parametrize("path", _GENERATING)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_is_left_costs_what_the_engine_made_for_it(
    engine: VllmEngine, path: str, *, stream: bool
) -> None:
    before = engine.load()
    usage = await _left(engine, long_request(path, stream=stream), path, tokens=20)
    await until(
        lambda: engine.load().tokens - before.tokens >= usage.completion_tokens, "it is counted"
    )
    assert engine.load().tokens - before.tokens == usage.completion_tokens >= 20
    await until(lambda: engine.load().running == 0, "the engine has stopped")
    assert usage.prompt_tokens > 0


async def test_the_choices_of_a_call_that_is_left_count_together_its_prompt_once(
    engine: VllmEngine,
) -> None:
    alone = (await ask(engine, chat("Who are you?"))).finished.prompt_tokens
    content = chat("Who are you?", n=4, temperature=1, max_tokens=3000, ignore_eos=True)
    before = engine.load()
    usage = await _left(engine, content, CHAT, tokens=40)
    await until(
        lambda: engine.load().tokens - before.tokens >= usage.completion_tokens, "it is counted"
    )
    assert engine.load().tokens - before.tokens == usage.completion_tokens
    assert usage.prompt_tokens == alone


async def test_each_prompt_of_a_list_counts(engine: VllmEngine) -> None:
    content = body(prompt=[[9, 9, 9], [9, 9]], max_tokens=3000, ignore_eos=True)
    usage = await _left(engine, content, COMPLETIONS, tokens=10)
    assert usage.prompt_tokens == 5


async def test_a_call_that_fails_by_its_deadline_says_what_it_cost(engine: VllmEngine) -> None:
    sink = Ledger()
    await engine.answer(call(long_request(CHAT, stream=True), CHAT, deadline_ms=200), sink)
    assert isinstance(sink.end, Failed)
    assert sink.failed_usage is not None
    assert sink.failed_usage.completion_tokens > 0
    assert sink.failed_usage.prompt_tokens > 0


@pytest.mark.parametrize("path", _GENERATING)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_beyond_the_budget_is_refused_by_its_field(
    engine: VllmEngine, path: str, *, stream: bool
) -> None:
    asked = json.loads(long_request(path, stream=stream))
    asked.pop("max_tokens", None)
    content = json.dumps(asked | {_LIMITS[path]: 30}).encode()
    failed = (await ask(engine, content, path, max_completion_tokens=29)).failed
    assert (failed.status, failed.type) == (400, "invalid_request_error")
    assert (failed.code, failed.param) == ("token_budget_exceeded", _LIMITS[path])
    assert failed.message == f"{_LIMITS[path]} is 30, at most 29 tokens are allowed here; ask " + (
        "for fewer."
    )
    finished = (await ask(engine, content, path, max_completion_tokens=30)).finished
    assert finished.completion_tokens == 30


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
async def test_a_request_that_names_no_limit_gets_that_of_the_call(
    engine: VllmEngine, path: str
) -> None:
    asked = json.loads(long_request(path, stream=False))
    asked = {name: value for name, value in asked.items() if not name.startswith("max_")}
    answer = await ask(engine, json.dumps(asked).encode(), path, max_completion_tokens=9)
    assert answer.finished.completion_tokens == 9
    assert answer.finished.finish_reasons == ("length",)


@pytest.mark.parametrize("path", _GENERATING)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_beyond_the_budget_is_refused_with_its_tokens(
    engine: VllmEngine, path: str, *, stream: bool
) -> None:
    asked = json.loads(long_request(path, stream=stream))
    asked[_LIMITS[path]] = asked["max_tokens"] = 4
    if path == COMPLETIONS:
        asked["prompt"] = [9] * 7
    content = json.dumps(asked).encode()
    prompt = (await ask(engine, content, path)).finished.prompt_tokens
    assert (await ask(engine, content, path, max_prompt_tokens=prompt)).finished
    failed = (await ask(engine, content, path, max_prompt_tokens=prompt - 1)).failed
    assert (failed.status, failed.code) == (400, "token_budget_exceeded")
    assert failed.param == _PROMPTS[path]
    assert failed.message == (
        f"The prompt has {prompt} tokens, at most {prompt - 1} are allowed here; shorten it."
    )


async def test_nothing_of_a_list_runs_where_one_of_its_prompts_is_too_long(
    engine: VllmEngine,
) -> None:
    content = body(prompt=[[9] * 3, [9] * 9], max_tokens=5)
    before = engine.load().tokens
    failed = (await ask(engine, content, COMPLETIONS, max_prompt_tokens=8)).failed
    assert failed.code == "token_budget_exceeded"
    assert "has 9 tokens" in failed.message
    await ask(engine, chat(max_tokens=1))
    assert engine.load().tokens - before <= 1


@pytest.mark.parametrize("path", _GENERATING)
async def test_no_tenant_finds_anothers_prompts_in_the_cache(engine: VllmEngine, path: str) -> None:
    words = f"Here is a text for {path}, which is long enough to fill blocks. " * 20
    question = [{"role": "user", "content": words}]
    prompt = {CHAT: question, MESSAGES: question}.get(path, words)
    asked = {_PROMPTS[path]: prompt, _LIMITS[path]: 2, "cache_salt": "mine", "temperature": 0}
    content = json.dumps(asked).encode()
    cached: dict[str, list[int]] = {}
    for salt in ("a", "a", "b", "b", "", ""):
        answer = await ask(engine, content, path, tenant_salt=salt)
        cached.setdefault(salt, []).append(answer.finished.cached_tokens)
    for salt, (first, again) in cached.items():
        assert first == 0, f"salt {salt!r} found what another had left"
        assert again > 0


def _waits(engine: VllmEngine, count: int) -> bool:
    return engine.load().waiting == count


async def test_the_lowest_priority_number_goes_first_and_equal_ones_in_their_order(
    engine: VllmEngine,
) -> None:
    ended: list[str] = []

    async def run(name: str, priority: int, **fields: Any) -> None:
        await ask(engine, body(ignore_eos=True, **fields), COMPLETIONS, priority=priority)
        ended.append(name)

    async with asyncio.TaskGroup() as tasks:
        # All places of the batch, for a while.
        for _ in range(16):
            tasks.create_task(run("full", 0, prompt=[[9]] * 16, max_tokens=60))
        await until(lambda: engine.load().running == 256, "the batch is full")
        later = (("c", 5), ("d", 5), ("a", -5), ("b", 0), ("e", 5))
        for count, (name, priority) in enumerate(later, 1):
            tasks.create_task(run(name, priority, prompt=[9, 9], max_tokens=200))
            await until(partial(_waits, engine, count), "it waits behind those before it")
        assert engine.load().waiting_tokens == 10
        assert engine.load().kv_blocks_used > 0
        assert engine.load().step_us > 0
    assert [name for name in ended if name != "full"] == ["a", "b", "c", "d", "e"]
