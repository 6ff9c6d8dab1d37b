"""Streams put together: texts, calls, usage, times, and what breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.pair import Answer, Call, Choice, Mark
from penstock.evals.comparison.replies import StreamedReply, error_of


def chunk(delta: dict[str, Any], finish_reason: str | None = None, index: int = 0) -> str:
    """A line with one choice."""
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return "data: " + json.dumps({"choices": [choice]})


def usage(**told: Any) -> str:
    """The last chunk's line."""
    return "data: " + json.dumps({"choices": [], "usage": told})


def read(*lines: str, **headers: str) -> Answer:
    """The answer of lines that came a second each."""
    reply = StreamedReply({name.replace("_", "-"): value for name, value in headers.items()})
    for second, line in enumerate(lines, start=1):
        reply.feed(f"{line}\n".encode(errors="surrogatepass"), float(second))
    return reply.answer(float(len(lines)))


def test_an_answer_is_its_chunks_put_together_with_their_times() -> None:
    found = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        "",
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        usage(
            prompt_tokens=9,
            completion_tokens=3,
            prompt_tokens_details={"cached_tokens": 8},
        ),
        "data: [DONE]",
        X_Penstock_Backend="mini",
        X_Penstock_Backend_Version="penstock-mini@1",
        X_Penstock_Adapter_Version="pirate@2",
    )
    assert found == Answer(
        choices=(Choice("Hello", "stop"),),
        prompt_tokens=9,
        completion_tokens=3,
        ttft=2.0,
        tpot=1.0,
        total=7.0,
        model="mini penstock-mini@1",
        adapter="pirate@2",
    )


def test_calls_and_choices_are_each_put_together() -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "function": function}]}

    found = read(
        chunk(call(0, name="time", arguments="")),
        chunk(call(0, arguments='{"a"')),
        chunk(call(1, name="weather", arguments="{}")),
        chunk({"refusal": "No."}, "stop", index=1),
        chunk(call(0, arguments=": 1}")),
        "data: [DONE]",
    )
    assert found.calls == (Call("time", '{"a": 1}'), Call("weather", "{}"))
    assert found.choices[1] == Choice("", "stop", (), "No.")
    assert found.ttft == 1.0


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([], "without [DONE]"),
        ([chunk({"content": "a"})], "without [DONE]"),
        (["data: [DONE]"], "without [DONE]"),
        (["data: {"], "no chunk of a chat completion"),
        (["data: []"], "no chunk of a chat completion"),
        ([chunk({}), 'data: {"error": {"code": "x", "message": "m"}}'], "broken stream: x: m"),
    ],
)
def test_what_is_no_whole_stream_is_an_error(lines: list[str], error: str) -> None:
    assert error in read(*lines).error


@given(st.lists(st.text() | st.text().map("data: {}".format) | st.just(chunk({})), max_size=5))
def test_any_lines_are_an_answer_or_an_error(lines: list[str]) -> None:
    assert isinstance(read(*lines), Answer)


def test_bytes_may_come_as_they_like_and_a_line_ends_where_http_says() -> None:
    text = "sea\u2028s\u00e4\u0085"
    event = json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=False)
    reply = StreamedReply({})
    for byte in f"data: {event}\r\n\r\ndata: [DONE]\n".encode():
        reply.feed(bytes([byte]), 0.0)
    assert (reply.answer(99.0).text, reply.answer(99.0).error) == (text, "")


def test_an_answer_that_is_not_what_was_asked_for_is_marked() -> None:
    reply = StreamedReply({"X-Penstock-Trimmed": "messages=3, tokens=812"})
    assert reply.marks == {Mark.TRIMMED}
    reply.feed(b": x-penstock-degraded: queue_deadline\n", 0.0)
    assert reply.marks == {Mark.TRIMMED, Mark.DEGRADED}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"code": "overloaded", "message": "come again"}}', "overloaded: come again"),
        ('{"error": {"type": "t", "message": "m"}}', "t: m"),
        ("Bad Gateway", "Bad Gateway"),
        ("[" * 100_000, "[" * 200),
    ],
)
def test_the_words_of_an_error_are_its_own_or_its_body(body: str, words: str) -> None:
    assert error_of(body) == words
