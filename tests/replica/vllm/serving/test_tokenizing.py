"""/tokenize and /detokenize by the real engine, and what they refuse."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.guards.limits import MAX_TOKENIZED, MAX_TOKENS
from tests.replica.vllm.talking import CHAT, ON_THE_SHARED_ENGINE, Answer, ask, chat

pytestmark = ON_THE_SHARED_ENGINE


async def _ask(engine: VllmEngine, path: str, **fields: Any) -> Answer:
    return await ask(engine, json.dumps(fields).encode(), path)


async def test_tokens_become_the_text_again(engine: VllmEngine) -> None:
    tokens = (await _ask(engine, "/tokenize", prompt="What is a gateway?")).json["tokens"]
    again = await _ask(engine, "/detokenize", tokens=tokens)
    assert again.json["prompt"] == "What is a gateway?"
    assert again.finished.completion_tokens == 0


async def test_a_conversation_has_the_tokens_that_a_chat_uses(engine: VllmEngine) -> None:
    messages = [{"role": "user", "content": "What is a gateway?"}]
    counted = await _ask(engine, "/tokenize", messages=messages)
    answered = await ask(engine, chat(), CHAT)
    assert counted.json["count"] == answered.finished.prompt_tokens


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/detokenize", {"tokens": [-1]}),
        ("/detokenize", {"tokens": [1 << 40]}),
        ("/detokenize", {"tokens": [1 << 70]}),
        ("/detokenize", {"tokens": [1] * (MAX_TOKENS + 1)}),
        ("/tokenize", {"prompt": "a" * (MAX_TOKENIZED + 1)}),
        ("/tokenize", {"prompt": 7}),
        ("/tokenize", {}),
    ],
)
async def test_hostile_values_are_the_clients_fault(
    engine: VllmEngine, path: str, fields: dict[str, Any]
) -> None:
    failed = (await _ask(engine, path, **fields)).failed
    assert (failed.status, failed.fault) == (400, "client")


async def test_a_long_text_has_the_tokens_that_it_has_at_once(engine: VllmEngine) -> None:
    text = Path("README.md").read_text() * 3
    tokens = (await _ask(engine, "/tokenize", prompt=text)).json["tokens"]
    tokenizer = engine.launched.llm.renderer.get_tokenizer()
    assert tokens == tokenizer(text, truncation=False)["input_ids"]


async def test_one_tenants_long_texts_do_not_keep_another_waiting(engine: VllmEngine) -> None:
    content = json.dumps({"prompt": "What is a gateway? " * 50_000}).encode()
    async with asyncio.TaskGroup() as tasks:
        long = [
            tasks.create_task(ask(engine, content, "/tokenize", tenant="rude")) for _ in range(4)
        ]
        silence = tasks.create_task(_longest_silence(long))
        await asyncio.sleep(0.1)
        await ask(engine, chat(max_tokens=1), CHAT, tenant="other")
        assert not any(one.done() for one in long)
    assert all(one.result().finished for one in long)
    assert silence.result() < 1.0


async def _longest_silence(until: list[asyncio.Task[Answer]]) -> float:
    """Seconds for which the loop did nothing else, before all of these were done."""
    loop, longest = asyncio.get_running_loop(), 0.0
    while not all(one.done() for one in until):
        before = loop.time()
        await asyncio.sleep(0.001)
        longest = max(longest, loop.time() - before)
    return longest


async def test_a_prompt_beyond_the_context_is_refused_once_that_is_clear(
    engine: VllmEngine,
) -> None:
    content = chat("What is a gateway? " * 2_000)
    failed = (await ask(engine, content, CHAT)).failed
    assert failed.code == "context_length_exceeded"
