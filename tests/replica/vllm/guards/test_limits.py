"""What one request may ask for at once, refused by the field that asks for too much."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.limits import (
    MAX_INPUTS,
    MAX_NUMBERS,
    MAX_PACKED,
    MAX_TOKENIZED,
    MAX_TOKENS,
    Capacity,
    check,
    check_numbers,
)

_CAPACITY = Capacity(sequences=256, context=4096)
_PAIRS = ENDPOINTS["/v1/score"].several
_MESSAGE = {"role": "user", "content": "Hello"}


def request(**fields: Any) -> Any:
    """A request model that has these fields and no others."""
    return type("Request", (), fields | {"model_fields": fields})()


@pytest.mark.parametrize(
    ("several", "fields", "parameter"),
    [
        ((), {"n": 17}, "n"),
        (("prompt",), {"prompt": ["a"] * 100, "n": 3}, "prompt"),
        (("prompt",), {"prompt": [[1, 2]] * 257, "n": 1}, "prompt"),
        (("prompt", "prompt_embeds"), {"prompt_embeds": [b""] * 257, "n": 1}, "prompt_embeds"),
        (("input",), {"input": ["a"] * (MAX_INPUTS + 1)}, "input"),
        (("input", "messages"), {"messages": [[_MESSAGE]] * (MAX_INPUTS + 1)}, "messages"),
        (_PAIRS, {"text_1": ["a"] * 1025, "text_2": ["b"] * 1024}, "text_1"),
        (("query", "documents"), {"query": "a", "documents": ["b"] * MAX_INPUTS}, "documents"),
        (("input",), {"input": ["a"] * 62, "padding": "max_length"}, "padding"),
        ((), {"prompt": "a" * (MAX_TOKENIZED + 1), "return_token_strs": False}, "prompt"),
        (
            (),
            {
                "messages": [{"role": "user", "content": "a" * MAX_TOKENIZED}],
                "return_token_strs": False,
            },
            "messages",
        ),
        ((), {"tokens": [1] * (MAX_TOKENS + 1)}, "tokens"),
        ((), {"tokens": [1, 1 << 32]}, "tokens"),
    ],
)
def test_too_much_is_refused_by_its_field(
    several: tuple[str, ...], fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(NotOffered) as caught:
        check(request(**fields), several, _CAPACITY)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("several", "fields"),
    [
        (("prompt",), {"prompt": "text", "n": 16}),
        (("prompt",), {"prompt": [1] * 5000, "n": 1}),
        (("prompt",), {"prompt": ["a"] * 256, "n": 1}),
        (("prompt",), {"prompt": None, "n": None}),
        (("input",), {"input": [1] * 5000}),
        (("input", "messages"), {"messages": [_MESSAGE] * 5000}),
        (("input",), {"input": ["a"] * MAX_INPUTS}),
        ((), {"input": [_MESSAGE] * 5000}),
        (("input",), {"input": ["a"] * 61, "padding": "max_length"}),
        (("input",), {"input": ["a"] * MAX_INPUTS, "padding": "do_not_pad"}),
        ((), {"tokens": [0, (1 << 32) - 1]}),
        ((), {"tokens": []}),
        ((), {"prompt": "a" * MAX_TOKENIZED, "return_token_strs": True}),
    ],
)
def test_ordinary_requests_pass(several: tuple[str, ...], fields: dict[str, Any]) -> None:
    check(request(**fields), several, _CAPACITY)


@pytest.mark.parametrize(
    ("fields", "width"),
    [
        ({"input": ["a"] * 257}, MAX_NUMBERS // 256),
        ({"input": ["a"] * 1025, "encoding_format": "base64"}, MAX_PACKED // 1024),
        ({"input": ["a"] * 257, "dimensions": MAX_NUMBERS // 256}, 1 << 20),
        ({"messages": [[_MESSAGE]] * 257}, MAX_NUMBERS // 256),
    ],
)
def test_more_numbers_than_an_answer_holds_are_refused(fields: dict[str, Any], width: int) -> None:
    with pytest.raises(NotOffered, match=str(MAX_NUMBERS)) as caught:
        check_numbers(request(**fields), ("input", "messages"), width)
    assert caught.value.parameter == next(iter(fields))


@pytest.mark.parametrize(
    ("fields", "width"),
    [
        ({"input": ["a"] * 256}, MAX_NUMBERS // 256),
        ({"input": ["a"] * 1024, "encoding_format": "base64"}, MAX_PACKED // 1024),
        ({"input": ["a"] * 2048, "dimensions": 64}, 4096),
        ({"input": [1] * 5000}, 4096),
        ({"input": "a", "dimensions": -1}, 4096),
        ({"input": ["a"] * 2048}, 0),
    ],
)
def test_as_many_numbers_as_an_answer_holds_pass(fields: dict[str, Any], width: int) -> None:
    check_numbers(request(**fields), ("input", "messages"), width)
