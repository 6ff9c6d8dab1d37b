"""Answers of every kind that are cut and gone on with, on a real engine."""

from __future__ import annotations

import asyncio

import pytest

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.resume.cutting import contents, gone_on, streamed
from tests.replica.vllm.resume.kinds import KINDS, call
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE

pytestmark = ON_THE_SHARED_ENGINE


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_goes_on_as_if_nothing_had_been(engine: VllmEngine, kind: str) -> None:
    asked = call(kind, f"cut-{kind.replace(' ', '-')}")
    whole = await streamed(engine, asked)
    assert whole.finished
    count = len(whole.chunks)
    cuts = sorted(
        {1, 2, 3, count // 3, count // 2, count - 3, count - 2, count - 1}
        & set(range(1, count + 1))
    )
    rests = await asyncio.gather(*(gone_on(engine, asked, whole, cut) for cut in cuts))
    marks = ""
    for cut, rest in zip(cuts, rests, strict=True):
        got = whole.with_rest(cut, rest)
        marks += "E" if got.body == whole.body else "n"
        assert contents(got) == contents(whole), cut
        assert rest.finished.completion_tokens == whole.finished.completion_tokens, cut
        assert (
            rest.finished.prompt_tokens,
            rest.finished.cached_tokens,
            rest.finished.finish_reasons,
        ) == (
            whole.finished.prompt_tokens,
            whole.finished.cached_tokens,
            whole.finished.finish_reasons,
        )
    print("MARK", kind, count, cuts, marks, len(whole.finished.finish_reasons), whole.body[:0])
