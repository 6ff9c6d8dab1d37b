"""Counting the values of a body before it is parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.guards.elements import MOST_NESTED, MOST_VALUES, counted, refusal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, (1, 0)),
        ({"a": [1, 2, {"b": "c"}], "d": 4}, (3, 3)),
        ({"text": '[{,"\\' * 30_000, "more": ["\\", '"', "\\\\,"]}, (2, 3)),
        ("\\" * 99_999, (0, 0)),
        ([["[,"] * 3] * 2000, (2001, 5999)),
    ],
)
def test_what_is_inside_texts_does_not_count(value: Any, expected: tuple[int, int]) -> None:
    assert counted(json.dumps(value).encode()) == expected


@pytest.mark.parametrize(
    "body", [b"", b'"', b"\\", b'"\\', b'{"a', b'\\"' * 100_000, b'"\\' * 100_000]
)
def test_what_is_no_json_is_counted_all_the_same(body: bytes) -> None:
    assert counted(body) <= (0, 1) or counted(body) == (1, 0)


async def test_a_body_of_many_parts_or_numbers_is_refused_and_one_of_long_texts_is_not() -> None:
    parts = {"messages": [{"role": "user", "content": [{"text": "x"}] * MOST_NESTED}]}
    for value in (parts, {"prompt": [1] * (MOST_VALUES + 2)}):
        failed = await refusal(json.dumps(value).encode())
        assert failed is not None
        assert (failed.status, failed.fault, str(MOST_NESTED) in failed.message) == (
            400,
            "client",
            True,
        )
    texts = {"messages": [{"role": "user", "content": "[{,}]" * 200_000}]}
    assert await refusal(json.dumps(texts).encode()) is None
