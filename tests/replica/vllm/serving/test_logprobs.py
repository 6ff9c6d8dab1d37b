"""Answers with many log probabilities: vLLM's own to the byte, and not made on the loop."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.guards.limits import MAX_LOGPROBS, MAX_ON_LOOP
from tests.replica.vllm.talking import (
    CHAT,
    COMPLETIONS,
    ON_THE_SHARED_ENGINE,
    RESPONSES,
    SERVED,
    ask,
    body,
    chat,
)

pytestmark = ON_THE_SHARED_ENGINE

_MOST_ON_LOOP_S = 0.15  # of the loop's thread; what is asked for below took it half a second


def _ids(tokens: int) -> list[int]:
    return [5 + at % 900 for at in range(tokens)]


_PROMPT = {"prompt": _ids(200), "max_tokens": 1}
_SAYS_MUCH = {"ignore_eos": True, "top_logprobs": 20}
_LISTENED = {"model": "any", "input": "Count from 1.", "temperature": 0, "max_output_tokens": 80}
_MANY = [
    pytest.param(COMPLETIONS, body(**_PROMPT, prompt_logprobs=20), id="prompt_logprobs"),
    pytest.param(COMPLETIONS, body(**_PROMPT, echo=True, logprobs=15), id="echo"),
    pytest.param(
        COMPLETIONS,
        body(prompt=[_ids(70), _ids(90)], max_tokens=1, prompt_logprobs=5, n=2, temperature=1),
        id="several prompts and choices",
    ),
    pytest.param(
        CHAT,
        chat("Hello", n=4, max_tokens=40, logprobs=True, temperature=1, seed=1, **_SAYS_MUCH),
        id="choices of a chat",
    ),
    pytest.param(CHAT, chat("a " * 150, max_tokens=1, prompt_logprobs=9), id="a chat's prompt"),
    pytest.param(
        RESPONSES,
        json.dumps(_LISTENED | _SAYS_MUCH | {"include": ["message.output_text.logprobs"]}).encode(),
        id="responses",
    ),
]


async def _vllms_own(engine: VllmEngine, path: str, content: bytes) -> Any:
    """What vLLM's server says to an ordinary HTTP client."""
    assert engine._up is not None
    transport = httpx.ASGITransport(engine._up.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://vllm") as client:
        return (await client.post(path, json=json.loads(content) | {"model": SERVED})).json()


_OWN = ("id", "created", "created_at", "completed_at", "usage", "priority", "text", "store")


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Everything that an answer tells, without what differs from one answer to the next."""
    match value:
        case dict():
            inside = {name: one for name, one in value.items() if name not in _OWN}.items()
        case list():
            inside = dict(enumerate(value)).items()
        case float():
            return {path: pytest.approx(value, abs=0.2)}
        case _:
            return {path: value}
    found: dict[str, Any] = {path: type(value)}
    for name, one in inside:
        found |= _flat(one, f"{path}.{name}")
    return found


@pytest.mark.parametrize(("path", "content"), _MANY)
async def test_an_answer_with_many_equals_vllms_own(
    engine: VllmEngine, path: str, content: bytes
) -> None:
    theirs = _flat(await _vllms_own(engine, path, content))
    ours = _flat((await ask(engine, content, path)).json)
    assert len(ours) > MAX_ON_LOOP
    differ = {at: (ours.get(at), theirs.get(at)) for at in ours | theirs}
    assert [item for item in differ.items() if item[1][0] != item[1][1]][:5] == []


@pytest.mark.parametrize("asked", [{"prompt_logprobs": 20}, {"echo": True, "logprobs": 20}])
async def test_an_answer_with_many_is_not_made_on_the_loop(
    engine: VllmEngine, asked: dict[str, Any]
) -> None:
    content = body(prompt=_ids(1500), max_tokens=1, **asked)
    began = time.thread_time()
    assert (await ask(engine, content, COMPLETIONS)).finished
    assert time.thread_time() - began < _MOST_ON_LOOP_S


@pytest.mark.parametrize(
    ("path", "content", "field"),
    [
        (COMPLETIONS, {"prompt": [_ids(2500)] * 2, "prompt_logprobs": 20}, "prompt_logprobs"),
        (
            COMPLETIONS,
            {"prompt": _ids(2500), "prompt_logprobs": 20, "n": 2, "temperature": 1},
            "prompt_logprobs",
        ),
        (COMPLETIONS, {"prompt": [_ids(2500)] * 2, "echo": True, "logprobs": 20}, "logprobs"),
    ],
)
async def test_prompts_of_which_too_many_are_to_be_told_are_refused_by_the_field(
    engine: VllmEngine, path: str, content: dict[str, Any], field: str
) -> None:
    failed = (await ask(engine, body(**content), path)).failed
    assert (failed.status, failed.param, failed.fault) == (400, field, "client")
    assert "105000" in failed.message
    assert str(MAX_LOGPROBS) in failed.message


async def test_a_stream_tells_few_of_its_prompt(engine: VllmEngine) -> None:
    asked = {"echo": True, "logprobs": 1, "max_tokens": 1, "stream": True}
    few = await ask(engine, body(prompt=_ids(MAX_ON_LOOP // 2), **asked), COMPLETIONS)
    assert few.finished
    failed = (await ask(engine, body(prompt=_ids(MAX_ON_LOOP), **asked), COMPLETIONS)).failed
    assert (failed.status, failed.param) == (400, "logprobs")
    assert str(MAX_ON_LOOP) in failed.message
