"""The real engine's answers: vLLM's own, byte for byte where that can be."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import httpx
import pytest

from penstock.replica.values import Head
from penstock.replica.vllm.engine import VllmEngine
from tests.fakes.greedy_chats import CHATS, TOKENS
from tests.fakes.offline_vllm import offline_answers
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.talking import (
    CHAT,
    COMPLETIONS,
    ON_THE_SHARED_ENGINE,
    SERVED,
    ask,
    body,
    chat,
)

pytestmark = ON_THE_SHARED_ENGINE

_QUESTIONS = ("What is a gateway?", "Hello", "Tell me about the Rhine.", "Count from 3.")


async def _vllm_answers(engine: VllmEngine, path: str, content: bytes) -> Any:
    """What vLLM's server says to an ordinary HTTP client."""
    assert engine._up is not None
    transport = httpx.ASGITransport(engine._up.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://vllm") as client:
        fields = json.loads(content) | {"model": SERVED}
        return (await client.post(path, json=fields)).json()


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from one answer to the next: its id, its second, what was cached."""
    usage = {k: v for k, v in answer["usage"].items() if k != "prompt_tokens_details"}
    return {k: v for k, v in answer.items() if k not in ("id", "created")} | {"usage": usage}


@pytest.mark.parametrize("question", _QUESTIONS)
async def test_a_unary_answer_equals_vllms_own(engine: VllmEngine, question: str) -> None:
    theirs = await _vllm_answers(engine, CHAT, chat(question))
    ours = await ask(engine, chat(question))
    assert _comparable(ours.json) == _comparable(theirs)
    usage = ours.json["usage"]
    assert ours.finished.prompt_tokens == usage["prompt_tokens"]
    assert ours.finished.completion_tokens == usage["completion_tokens"]
    assert ours.finished.finish_reasons == (ours.json["choices"][0]["finish_reason"],)


async def test_answers_are_those_of_a_vllm_that_was_started_without_penstock(
    engine: VllmEngine,
) -> None:
    offline = await asyncio.to_thread(offline_answers)
    for messages, expected in zip(CHATS, offline, strict=True):
        ours = await ask(engine, body(messages=messages, temperature=0, max_tokens=TOKENS))
        assert ours.text() == expected["text"]
        assert ours.finished.finish_reasons == (expected["finish_reason"],)
        assert ours.finished.completion_tokens == expected["completion_tokens"]
        assert ours.finished.prompt_tokens == expected["prompt_tokens"]


@pytest.mark.parametrize("question", _QUESTIONS)
async def test_the_tokens_are_those_of_vllms_generate(engine: VllmEngine, question: str) -> None:
    from vllm import SamplingParams
    from vllm.inputs import tokens_input

    assert engine._up is not None
    llm = engine._up.launched.llm
    conversation = [{"role": "user", "content": question}]
    prompt = llm.get_tokenizer().apply_chat_template(
        conversation, add_generation_prompt=True, return_dict=False
    )
    params = SamplingParams(temperature=0, max_tokens=24)
    async for output in llm.generate(tokens_input(prompt), params, f"direct-{question}"):
        last = output.outputs[0]
    ours = await ask(engine, chat(question), token_groups=True)
    assert [i for g in ours.groups for i in g.token_ids] == list(last.token_ids)
    assert ours.text() == last.text


@pytest.mark.parametrize("question", _QUESTIONS)
async def test_streamed_and_unary_say_the_same(engine: VllmEngine, question: str) -> None:
    unary = await ask(engine, chat(question), token_groups=True)
    stream = await ask(engine, chat(question, stream=True), token_groups=True)
    assert stream.text() == unary.text()
    assert stream.finished.finish_reasons == unary.finished.finish_reasons
    assert stream.finished.completion_tokens == unary.finished.completion_tokens
    assert stream.tokens == unary.tokens == unary.finished.completion_tokens
    ids = [[i for g in answer.groups for i in g.token_ids] for answer in (stream, unary)]
    assert ids[0] == ids[1]
    assert stream.groups[-1].finish_reason == unary.finished.finish_reasons[0]


async def test_a_streams_events_are_counted_and_share_one_id_and_model(engine: VllmEngine) -> None:
    answer = await ask(engine, chat(stream=True), model="some-alias")
    assert answer.events == len(answer.sse) + 1
    assert {(e["id"], e["model"]) for e in answer.sse} == {(answer.sse[0]["id"], "some-alias")}
    assert answer.head
    assert answer.head == Head(
        200,
        "text/event-stream",
        prompt_tokens=answer.finished.prompt_tokens,
        cached_tokens=answer.finished.cached_tokens,
        queue_wait_us=answer.finished.queue_us,
        created=answer.sse[0]["created"],
    )


async def test_the_usage_chunk_comes_last_when_asked_for(engine: VllmEngine) -> None:
    answer = await ask(engine, chat(stream=True, stream_options={"include_usage": True}))
    last = answer.sse[-1]
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == answer.finished.completion_tokens
    plain = await ask(engine, chat(stream=True))
    assert not any(event.get("usage") for event in plain.sse)


async def test_completions_answer_as_well(engine: VllmEngine) -> None:
    theirs = await _vllm_answers(engine, COMPLETIONS, body(prompt="Hello"))
    ours = await ask(engine, body(prompt="Hello"), COMPLETIONS)
    assert _comparable(ours.json) == _comparable(theirs)


async def test_several_prompts_and_choices_are_numbered_through(engine: VllmEngine) -> None:
    content = body(prompt=["Hello", "Count"], n=2, temperature=1, stream=True, ignore_eos=True)
    answer = await ask(engine, content, COMPLETIONS, token_groups=True)
    assert {g.choice for g in answer.groups} == {0, 1, 2, 3}
    assert answer.finished.finish_reasons == ("length",) * 4
    assert answer.finished.completion_tokens == 4 * 24


async def test_logprobs_come_with_every_token(engine: VllmEngine) -> None:
    answer = await ask(engine, chat(logprobs=True, top_logprobs=3))
    content = answer.json["choices"][0]["logprobs"]["content"]
    assert len(content) == answer.finished.completion_tokens
    assert all(len(token["top_logprobs"]) == 3 for token in content)


async def test_a_stop_string_ends_the_answer_before_it(engine: VllmEngine) -> None:
    whole = (await ask(engine, chat())).text()
    stop = whole[8:12]
    answer = await ask(engine, chat(stop=[stop], stream=True), token_groups=True)
    assert answer.text() == whole[: whole.index(stop)]
    assert answer.finished.finish_reasons == ("stop",)
    assert answer.groups[-1].stop_reason == stop


async def test_a_json_schema_is_kept_to(engine: VllmEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "c", "schema": schema}}
    answer = await ask(engine, chat(response_format=response_format, max_tokens=100))
    assert json.loads(answer.text())["colour"] in ("red", "blue")


async def test_a_seed_with_a_prompt_longer_than_a_step_does_not_end_the_engine(
    engine: VllmEngine,
) -> None:
    content = body(prompt="Hello there. " * 200, seed=7, temperature=1)
    one, two = [await ask(engine, content, COMPLETIONS) for _ in range(2)]
    assert one.finished.prompt_tokens > 256
    assert one.text() == two.text()


async def test_sixty_four_streams_at_once_are_each_right(engine: VllmEngine) -> None:
    alone = {q: (await ask(engine, chat(q))).text() for q in _QUESTIONS}
    questions = _QUESTIONS * 16
    answers = await asyncio.gather(*(ask(engine, chat(q, stream=True)) for q in questions))
    assert [a.text() for a in answers] == [alone[q] for q in questions]


async def test_the_prefix_cache_is_apart_for_each_tenant(engine: VllmEngine) -> None:
    content = body(prompt="A prompt of many words, said again and again. " * 60, cache_salt="mine")
    first = await ask(engine, content, COMPLETIONS, tenant_salt="a")
    again = await ask(engine, content, COMPLETIONS, tenant_salt="a")
    other = await ask(engine, content, COMPLETIONS, tenant_salt="b")
    cached = [answer.finished.cached_tokens for answer in (first, again, other)]
    assert cached[1] > 0
    assert (cached[0], cached[2]) == (0, 0)


async def test_the_gauges_follow_the_engine(engine: VllmEngine) -> None:
    before = engine.load()
    answer = await ask(engine, chat())
    after = engine.load()
    assert after.tokens - before.tokens >= answer.finished.completion_tokens
    assert (after.running, after.waiting) == (0, 0)


async def test_a_probe_comes_back(engine: VllmEngine) -> None:
    async with asyncio.timeout(5):
        await engine.probe()


async def test_many_texts_enter_the_engine_a_few_in_each_turn_of_the_loop(
    engine: VllmEngine,
) -> None:
    content = body(prompt=[f"Lock {number}" for number in range(128)], max_tokens=1)
    entered = [0]
    with entering_requests(engine) as seen:

        async def look() -> None:
            while len(seen) < 128:
                entered.append(len(seen))
                await asyncio.sleep(0)
            entered.append(len(seen))

        answer, _ = await asyncio.gather(ask(engine, content, COMPLETIONS), look())
    assert [one["index"] for one in answer.json["choices"]] == list(range(128))
    assert max(after - before for before, after in pairwise(entered)) <= 16
