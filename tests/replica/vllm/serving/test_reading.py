"""Large bodies are read beside the loop, and mean what small ones do."""

from __future__ import annotations

import json

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    ask,
    body,
    chat,
)

_LARGE = b" " * (64 << 10)
"""Behind a body, it makes a large one of it."""

pytestmark = ON_THE_SHARED_ENGINE


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (CHAT, b"{bad"),
        (CHAT, b"[]"),
        (CHAT, b"[" * 5000 + b"]" * 5000),
        (CHAT, body()),
        (CHAT, chat(temperature="hot")),
        (CHAT, chat(stream_options={"include_usage": True})),
        (CHAT, chat(n=1000)),
        (CHAT, body(messages=[{"role": "user"}, {"role": "nobody", "content": 7}])),
        (COMPLETIONS, body(prompt=[["x"]])),
        (RESPONSES, body(input=[{}])),
        (MESSAGES, body(messages=[{"role": "user", "content": [{"type": 5}]}])),
        ("/tokenize", body(prompt=7)),
    ],
)
async def test_what_is_wrong_in_a_large_body_is_told_as_of_a_small_one(
    engine: VllmEngine, path: str, content: bytes
) -> None:
    small, large = [(await ask(engine, one, path)).failed for one in (content, content + _LARGE)]
    assert large == small


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (CHAT, chat()),
        (CHAT, chat(tools=[{"type": "function", "function": {"name": "f"}}])),
        (COMPLETIONS, body(prompt="Count from 1")),
        (MESSAGES, body(messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])),
        (RESPONSES, body(input=[{"role": "user", "content": "Hi"}], max_output_tokens=24)),
        ("/tokenize", body(prompt="What is a gateway?", return_token_strs=True)),
    ],
)
async def test_a_large_body_is_answered_as_a_small_one(
    engine: VllmEngine, path: str, content: bytes
) -> None:
    small, large = [await ask(engine, one, path) for one in (content, content + _LARGE)]
    assert large.finished.prompt_tokens == small.finished.prompt_tokens
    assert large.finished.completion_tokens == small.finished.completion_tokens
    assert large.json.keys() == small.json.keys()


async def test_a_long_answer_of_tokens_has_them_all_with_their_texts(engine: VllmEngine) -> None:
    content = json.dumps({"prompt": 'Say "hé" twice. ' * 5000, "return_token_strs": True}).encode()
    made = (await ask(engine, content, "/tokenize")).json
    tokenizer = engine.launched.llm.renderer.get_tokenizer()
    assert list(made) == ["count", "max_model_len", "tokens", "token_strs"]
    assert made["count"] == len(made["tokens"]) > 20_000
    assert made["token_strs"] == tokenizer.convert_ids_to_tokens(made["tokens"])
