"""/tokenize and /detokenize by the real engine, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.limits import MAX_TOKENIZED, MAX_TOKENS
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
