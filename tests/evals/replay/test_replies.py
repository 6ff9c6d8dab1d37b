"""Answers of each API, read as a replay reads them: streamed or not, whole or cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.replay.replies import AnyReply, Said

STREAM = {"content-type": "text/event-stream; charset=utf-8"}
BODY = {"content-type": "application/json"}


def events(*told: Any) -> list[bytes]:
    """Events of a stream, as they come."""
    return [
        b"data: "
        + (each.encode() if isinstance(each, str) else json.dumps(each).encode())
        + b"\n\n"
        for each in told
    ]


def said(parts: list[bytes], headers: dict[str, str] = STREAM) -> Said:
    """What an answer says whose parts come a second apart."""
    reply = AnyReply(headers)
    for second, part in enumerate(parts, start=1):
        reply.feed(part, float(second))
    return reply.said()


def choice(**told: Any) -> dict[str, Any]:
    """A chunk of a chat or a completion."""
    return {"choices": [{"index": 0, **told}]}


CHAT = [
    choice(delta={"role": "assistant", "content": ""}),
    choice(delta={"content": "Hi"}),
    choice(delta={}, finish_reason="stop"),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    "[DONE]",
]
COMPLETION = [choice(text="Hi"), choice(text="", finish_reason="length"), "[DONE]"]
MESSAGES = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
USAGE = {"input_tokens": 5, "output_tokens": 2}
RESPONSES = [
    {"type": "response.created", "response": {"object": "response", "status": "in_progress"}},
    {"type": "response.output_text.delta", "delta": "Hi"},
    {
        "type": "response.completed",
        "response": {"object": "response", "status": "completed", "usage": USAGE},
    },
]


@pytest.mark.parametrize(
    ("told", "ttft", "finish_reason", "tokens"),
    [
        (CHAT, 2, "stop", (5, 2)),
        (COMPLETION, 1, "length", (None, None)),
        (MESSAGES, 2, "end_turn", (5, 2)),
        (RESPONSES, 2, "completed", (5, 2)),
    ],
)
def test_a_stream_of_each_api_is_whole_with_its_last_event_and_truncated_before(
    told: list[Any], ttft: float, finish_reason: str, tokens: tuple[int | None, int | None]
) -> None:
    found = said(events(*told))
    assert found == Said(True, "", False, finish_reason, *tokens, ttft_s=ttft)
    for short in range(len(told)):
        assert said(events(*told[:short])).truncated


@pytest.mark.parametrize(
    ("told", "finish_reason", "tokens"),
    [
        ({"choices": [{"finish_reason": "stop"}], "usage": CHAT[3]["usage"]}, "stop", (5, 2)),  # type: ignore[index]
        ({"stop_reason": "max_tokens", "usage": USAGE}, "max_tokens", (5, 2)),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            *("max_output_tokens", (None, None)),
        ),
        ({"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 3}}, "", (3, None)),
    ],
)
def test_a_body_of_each_api_is_read(told: Any, finish_reason: str, tokens: Any) -> None:
    data = json.dumps(told).encode()
    assert said([data[:9], data[9:]], BODY) == Said(False, "", False, finish_reason, *tokens)
    assert said([data[:-1]], BODY).truncated


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ({"error": {"code": "engine_dead", "message": "it died"}}, "engine_dead: it died"),
        (
            {"type": "error", "error": {"type": "overloaded", "message": "later"}},
            "overloaded: later",
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "c", "message": "m"}}},
            "c: m",
        ),
        ("{half", "an event that is no JSON object: '{half'"),
    ],
)
def test_what_a_stream_says_of_its_failure_is_told_and_is_no_truncation(
    last: Any, error: str
) -> None:
    found = said(events(CHAT[1], last))
    assert (found.error, found.truncated) == (error, False)


@given(st.lists(st.binary(max_size=60), max_size=5), st.sampled_from([STREAM, BODY, {}]))
def test_any_bytes_are_an_answer_of_some_kind(parts: list[bytes], headers: dict[str, str]) -> None:
    assert said([b"data: ", *parts], headers).ttft_s is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "usage", "type", "error", "message", "response", "content"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), st.sampled_from([STREAM, BODY]))
def test_any_json_is_an_answer_of_some_kind(told: list[Any], headers: dict[str, str]) -> None:
    assert said(events(*told), headers).streamed == (headers is STREAM)
