"""Ordinary requests that end vLLM's CPU engine for everybody, unless the replica's cures hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import (
    CHAT,
    COMPLETIONS,
    ON_THE_SHARED_ENGINE,
    Answer,
    ask,
    body,
    chat,
)

pytestmark = ON_THE_SHARED_ENGINE

_ADAPTERS = ("", "pirate@1", "json@1")
_PROMPTS = ["What is a gateway?", "What is a replica? " * 60]  # the second comes in several steps


async def _together(engine: VllmEngine, path: str, content: bytes) -> list[Answer]:
    """One request for each adapter and the base model, at once."""
    return await asyncio.gather(*(ask(engine, content, path, adapter=name) for name in _ADAPTERS))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (COMPLETIONS, body(prompt=_PROMPTS, prompt_logprobs=2)),
        (COMPLETIONS, body(prompt=_PROMPTS, echo=True, logprobs=1)),
        (COMPLETIONS, body(prompt=_PROMPTS, echo=True, logprobs=1, max_tokens=0)),
        (COMPLETIONS, body(prompt="x y", n=3, seed=1, temperature=1, prompt_logprobs=1)),
        (CHAT, chat(prompt_logprobs=1)),
        (CHAT, chat(echo=True, prompt_logprobs=0)),
    ],
)
async def test_logprobs_of_prompts_are_answered_beside_others(
    engine: VllmEngine, path: str, content: bytes
) -> None:
    for answer in await _together(engine, path, content):
        assert answer.finished.prompt_tokens > 0


async def test_logprobs_of_a_prompt_are_those_of_its_own_adapter(engine: VllmEngine) -> None:
    content = body(prompt=_PROMPTS, prompt_logprobs=0, max_tokens=1)
    alone = [await ask(engine, content, COMPLETIONS, adapter=name) for name in _ADAPTERS]
    mixed = await _together(engine, COMPLETIONS, content)
    for one, other in zip(alone, mixed, strict=True):
        for prompt in range(len(_PROMPTS)):
            assert _logprobs(one, prompt) == pytest.approx(_logprobs(other, prompt), abs=0.1)
    assert _logprobs(alone[0], 0) != pytest.approx(_logprobs(alone[1], 0), abs=0.1)


def _logprobs(answer: Answer, prompt: int) -> list[float]:
    tokens: list[dict[str, Any] | None] = answer.json["choices"][prompt]["prompt_logprobs"]
    return [next(iter(token.values()))["logprob"] for token in tokens if token]
