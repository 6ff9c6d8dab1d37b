"""What gateways tell becomes the answers that checks read, whatever a model says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.comparer.answers import answer_of, pair_of
from penstock.evals.comparison.pair import Call, Mark
from penstock.v1 import common_pb2, shadow_pb2
from tests.fakes.shadow_batches import answer, pair, streamed


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer_of_body(body: object) -> shadow_pb2.ShadowAnswer:
    message = answer()
    message.body = json.dumps(body).encode()
    return message


def test_a_stream_is_put_together_with_the_times_that_the_gateway_saw() -> None:
    message = streamed(
        [chunk(role="assistant"), chunk(content="Hel"), chunk("stop", content="lo")],
        deployment="chat",
        model_version="3-ab",
        adapter="pirate@1",
        ttft_us=200_000,
        total_us=1_200_000,
        queue_us=50_000,
        usage=common_pb2.Usage(
            prompt_tokens=9, completion_tokens=11, cached_tokens=4, cost_nanousd=2_000
        ),
    )
    found = answer_of(message)
    assert (found.text, found.choices[0].finish_reason, found.failed) == ("Hello", "stop", False)
    assert (found.ttft, found.tpot, found.total) == pytest.approx((0.2, 0.1, 1.2))
    assert (found.prompt_tokens, found.completion_tokens) == (9, 11)
    assert found.cost == pytest.approx(2e-6)
    assert (found.model, found.adapter) == ("chat 3-ab", "pirate@1")


def test_an_answer_in_one_piece_has_no_time_between_tokens() -> None:
    found = answer_of(answer("Yes, of course.", seconds=2, ttft_us=1_900_000))
    assert found.text == "Yes, of course."
    assert (found.ttft, found.tpot, found.total) == (None, None, 2.0)


@pytest.mark.parametrize("as_stream", [True, False])
def test_completions_are_read_as_chats_are(as_stream: bool) -> None:
    choices = [{"index": 0, "text": "once", "finish_reason": "length"}]
    message = streamed([{"choices": choices}])
    if not as_stream:
        message.body = b'{"choices": [{"index": 0, "text": "once", "finish_reason": "length"}]}'
        message.content_type = "application/json"
    found = answer_of(message)
    assert (found.text, found.choices[0].finish_reason) == ("once", "length")


def test_calls_of_tools_are_read_from_streams_and_from_whole_answers() -> None:
    def call(name: str, arguments: str) -> dict[str, Any]:
        return {"index": 0, "function": {"name": name, "arguments": arguments}}

    parts = streamed(
        [
            chunk(tool_calls=[call("look", '{"a"')]),
            chunk("tool_calls", tool_calls=[call("", ":1}")]),
        ]
    )
    whole = answer()
    whole.body = (
        b'{"choices": [{"message": {"content": null, "tool_calls": '
        b'[{"function": {"name": "look", "arguments": "{\\"a\\":1}"}}]}}]}'
    )
    assert answer_of(parts).calls == answer_of(whole).calls == (Call("look", '{"a":1}'),)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (answer("no room", status=503), "503 t: no room"),
        (shadow_pb2.ShadowAnswer(error_code="upstream_error"), "upstream_error"),
        (shadow_pb2.ShadowAnswer(), "0"),
        (streamed([chunk(content="Hel")], done=False), "ended without [DONE]"),
        (streamed([{"choices": [7, {"text": 7}]}]), "no chunk of a chat"),
        (answer_of_body({"choices": [{"message": {"tool_calls": 7}}]}), "no chunk of a chat"),
        (answer_of_body({"choices": {"a": 1}}), "no chunk of a chat"),
        (answer_of_body([1]), "no chunk of a chat"),
        (streamed([{"error": {"code": "engine_dead", "message": "gone"}}]), "engine_dead: gone"),
    ],
)
def test_what_is_no_whole_answer_is_an_error(message: shadow_pb2.ShadowAnswer, words: str) -> None:
    assert words in answer_of(message).error


def test_what_a_gateway_marked_or_cut_is_marked() -> None:
    found = pair_of(pair(marks=["degraded", "failed_over", "of a later version"]))
    assert found.marks == {Mark.DEGRADED}
    assert pair_of(pair(candidate=answer(cut=True))).marks == {Mark.NOT_COMPARABLE}
    assert pair_of(pair(again=answer(cut=True))).marks == {Mark.NOT_COMPARABLE}


def test_what_was_asked_for_is_read_off_the_request() -> None:
    found = pair_of(pair(body={"response_format": {"type": "json_object"}}, again=answer()))
    assert found.asked.json
    assert found.again is not None
    broken = pair()
    broken.body = b"\xff no JSON"
    assert not pair_of(broken).asked.json
    assert pair_of(broken).again is None


@given(st.binary(max_size=200), st.sampled_from(["text/event-stream", "application/json", ""]))
def test_whatever_a_model_writes_is_an_answer_or_an_error(body: bytes, kind: str) -> None:
    for prefix in (b"", b"data: ", b'{"choices": ', b'data: {"choices": [', b'{"choices": [{'):
        found = answer_of(
            shadow_pb2.ShadowAnswer(status=200, content_type=kind, body=prefix + body)
        )
        assert found.error or found.choices
