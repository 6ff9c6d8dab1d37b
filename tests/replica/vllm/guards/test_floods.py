"""Requests that are wrong many times over: they cost their sender, and nobody else much."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE, ask

pytestmark = ON_THE_SHARED_ENGINE

_MANY: Final = 5000
_MOST_CPU_S: Final = 1.0


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/responses", {"input": [{}] * _MANY}),
        ("/v1/responses", {"input": "x", "tools": [{}] * _MANY}),
        ("/v1/chat/completions", {"messages": [{}] * _MANY}),
        ("/v1/chat/completions", {"messages": [], "tools": [{}] * _MANY}),
        ("/v1/messages", {"messages": [{}] * _MANY, "max_tokens": 1}),
        ("/v1/messages/count_tokens", {"messages": [{}] * _MANY}),
        ("/v1/completions", {"prompt": [["x"]] * _MANY}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{}] * 400_000}]}),
        ("/v1/completions", {"prompt": [1] * 2_000_000}),
        ("/tokenize", {"messages": [{}] * _MANY}),
        ("/detokenize", {"tokens": [-1] * _MANY * 10}),
        ("/v1/completions", {"prompt": "x", "logit_bias": dict.fromkeys(map(str, range(50_000)))}),
    ],
)
async def test_thousands_of_errors_are_told_as_few(
    engine: VllmEngine, path: str, fields: dict[str, Any]
) -> None:
    content = json.dumps(fields).encode()
    before = time.process_time()
    failed = (await ask(engine, content, path)).failed
    assert time.process_time() - before < _MOST_CPU_S
    assert (failed.status, failed.fault) == (400, "client")
    assert len(failed.message) < 100_000
