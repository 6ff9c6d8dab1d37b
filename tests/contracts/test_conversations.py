"""What every engine does with a chat that has more tokens than it may, seen through `Inference`.

Comes before test_engine.py, whose last test ends the replica.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.v1 import inference_pb2
from tests.fakes.contract_engines import LOCAL
from tests.fakes.replica_process import answer_of, raw_request

pytestmark = [pytest.mark.processes, LOCAL]

_PIN = {"penstock": {"pin": True}}
_NEWEST = {"role": "user", "content": "What is a gateway?"}


def _said(role: str, words: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": words, **more}


def _turn(about: str, **more: Any) -> list[dict[str, Any]]:
    return [
        _said("user", f"Tell me more of {about}. " * 8, **more),
        _said("assistant", f"There is much to say of {about}. " * 8),
    ]


def _called(city: str) -> list[dict[str, Any]]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return [
        _said("user", f"How is the weather in {city}? " * 8),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain, and wind from the west."},
    ]


def _request(messages: list[Any], most: int = 0, **fields: Any) -> inference_pb2.CallRequest:
    body = {"messages": messages, "temperature": 0, "max_tokens": 8, "return_token_ids": True}
    request = raw_request(json.dumps(body | fields).encode())
    request.max_prompt_tokens = most
    return request


def _trimmed(messages: list[Any], most: int, **fields: Any) -> inference_pb2.CallRequest:
    request = _request(messages, most, **fields)
    request.trim = True
    return request


class _Told:
    """An answer: what tells which prompt it is of, and the figures beside it."""

    def __init__(self, events: list[inference_pb2.CallEvent]) -> None:
        assert events[-1].HasField("finished"), events
        body = json.loads(answer_of(events))
        # The words follow from the prompt where no tokens of it are told.
        self.prompt = body.get("prompt_token_ids") or body["choices"][0]["message"]["content"]
        self.prompt_tokens = events[-1].finished.usage.prompt_tokens
        self.trimmed = (events[0].head.trimmed_messages, events[0].head.trimmed_tokens)


def _ask(stub: Any, request: inference_pb2.CallRequest) -> _Told:
    return _Told(list(stub.Call(request, timeout=60)))


def _failure(stub: Any, request: inference_pb2.CallRequest) -> Any:
    (event,) = stub.Call(request, timeout=60)
    assert event.HasField("failed"), event
    return event.failed.error


def _assert_kept(stub: Any, messages: list[Any], kept: list[Any]) -> None:
    """With room for these messages alone, they are what stays, and what went is told."""
    whole, alone = _ask(stub, _request(messages)), _ask(stub, _request(kept))
    told = _ask(stub, _trimmed(messages, alone.prompt_tokens))
    assert told.prompt == alone.prompt != whole.prompt
    assert told.prompt_tokens == alone.prompt_tokens
    assert told.trimmed == (
        len(messages) - len(kept),
        whole.prompt_tokens - alone.prompt_tokens,
    )


def test_the_oldest_turns_go_first_and_system_messages_stay(stub: Any) -> None:
    system, later = _said("system", "Be brief."), _said("system", "Be polite, too.")
    messages = [system, *_turn("rivers"), later, *_turn("mills"), *_turn("bees"), _NEWEST]
    _assert_kept(stub, messages, [system, later, *_turn("mills"), *_turn("bees"), _NEWEST])
    _assert_kept(stub, messages, [system, later, *_turn("bees"), _NEWEST])
    _assert_kept(stub, messages, [system, later, _NEWEST])


def test_no_turn_goes_that_need_not(stub: Any) -> None:
    messages = [*_turn("rivers"), *_turn("mills"), _NEWEST]
    whole = _ask(stub, _request(messages)).prompt_tokens
    assert _ask(stub, _trimmed(messages, whole)).trimmed == (0, 0)
    assert _ask(stub, _trimmed(messages, whole - 1)).trimmed[0] == 2


def test_a_call_of_tools_and_its_result_go_or_stay_together(stub: Any) -> None:
    messages = [*_called("Rome"), *_turn("mills"), *_called("Paris"), *_turn("bees"), _NEWEST]
    _assert_kept(stub, messages, [*messages[3:]])
    _assert_kept(stub, messages, [*messages[5:]])
    pinned = [*_called("Rome"), *_turn("mills"), _NEWEST]
    marked = [*pinned[:2], {**pinned[2], **_PIN}, *pinned[3:]]
    _assert_kept(stub, marked, [*pinned[1:3], _NEWEST])


def test_pinned_messages_stay(stub: Any) -> None:
    messages = [*_turn("rivers", **_PIN), *_turn("mills"), _NEWEST]
    _assert_kept(stub, messages, [_turn("rivers")[0], _NEWEST])


def test_a_mark_changes_no_answer_and_is_never_an_error(stub: Any) -> None:
    plain = _ask(stub, _request([*_turn("rivers"), _NEWEST]))
    for mark in ({"pin": True}, {"pin": "yes"}, {}, True, None, 7, "pin", [1]):
        marked = _ask(stub, _request([*_turn("rivers", penstock=mark), _NEWEST]))
        assert (marked.prompt, marked.prompt_tokens) == (plain.prompt, plain.prompt_tokens)


def test_what_has_to_stay_and_is_too_much_is_refused(stub: Any) -> None:
    messages = [_said("system", "Be brief. " * 8), *_turn("rivers"), _NEWEST]
    error = _failure(stub, _trimmed(messages, 12))
    assert (error.status, error.code, error.param) == (400, "token_budget_exceeded", "messages")
    assert error == _failure(stub, _request(messages, 12))


def test_without_leave_nothing_goes(stub: Any) -> None:
    messages = [*_turn("rivers"), _NEWEST]
    whole = _ask(stub, _request(messages)).prompt_tokens
    error = _failure(stub, _request(messages, whole - 1))
    assert error.code == "token_budget_exceeded"
