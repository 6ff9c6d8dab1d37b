"""What goes to Bedrock meets the bounds of Converse's own model, whatever a client wrote."""

from __future__ import annotations

import json
import re
from typing import Any

import botocore.session
import botocore.validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.providers.converse_request import converse_request
from penstock.replica.providers.settings import Allowed
from penstock.replica.providers.values import Ask, ProviderFailed
from penstock.replica.values import Call
from tests.fakes.provider_calls import CHAT

_SHAPE = (
    botocore.session.Session()
    .get_service_model("bedrock-runtime")
    .operation_model("Converse")
    .input_shape
)


def _faults(value: Any, shape: Any, where: str = "") -> list[str]:
    """What botocore's model says of values and botocore's validator does not look at."""
    limits = shape.metadata
    found: list[str] = []
    if shape.type_name == "structure":
        if shape.is_document_type:
            return [] if _is_json(value) else [f"{where}: no JSON"]
        for name, member in value.items():
            found += _faults(member, shape.members[name], f"{where}.{name}")
    elif shape.type_name == "list":
        for at, member in enumerate(value):
            found += _faults(member, shape.member, f"{where}[{at}]")
    size = value if isinstance(value, int | float) else len(value)
    if not limits.get("min", size) <= size <= limits.get("max", size):
        found.append(f"{where}: {value!r} is out of bounds")
    if isinstance(value, str) and where != ".modelId":
        if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
            found.append(f"{where}: {value!r} does not match {limits['pattern']}")
        if value not in limits.get("enum", (value,)):
            found.append(f"{where}: {value!r} is none of {limits['enum']}")
    return found


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


_MARK = st.sampled_from(
    [None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"ttl": "9h"}]
)
_TEXT = st.text(max_size=6)
_ID = st.sampled_from(["c1", "call_65OReG|fc_0feeb", "c" * 90, "functions.f:0", "", "é", "f\n"])
_NAME = st.sampled_from(["f", "a.b", "n" * 65, "get_it"])
_ARGUMENTS = st.sampled_from(
    ["{}", "", "[1]", "no JSON", '{"a": NaN}', '{"a": 1e400}', '{"city": "Graz"}', "null"]
)


@st.composite
def _part(draw: st.DrawFn) -> dict[str, Any]:
    part: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"type": "text", "text": draw(_TEXT)},
                {"type": "refusal", "refusal": "No."},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {}},
            ]
        )
    )
    return {**part, "cache_control": draw(_MARK)}


_CONTENT = st.none() | _TEXT | st.lists(_part(), max_size=3)


@st.composite
def _message(draw: st.DrawFn) -> dict[str, Any]:
    role = draw(st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]))
    message: dict[str, Any] = {"role": role, "content": draw(_CONTENT)}
    message["cache_control"] = draw(_MARK)
    if role == "tool":
        message["tool_call_id"] = draw(_ID)
    if role == "assistant" and draw(st.booleans()):
        function = {"name": draw(_NAME), "arguments": draw(_ARGUMENTS)}
        message["tool_calls"] = [{"id": draw(_ID), "type": "function", "function": function}]
    return message


_TOOL = st.builds(
    lambda name, described, mark: {
        "type": "function",
        "function": {"name": name, "description": described},
        "cache_control": mark,
    },
    _NAME,
    _TEXT,
    _MARK,
)
_FIELDS = st.fixed_dictionaries(
    {"messages": st.lists(_message(), min_size=1, max_size=5)},
    optional={
        "temperature": st.sampled_from([0, 0.5, 1, 1.5, -1, float("nan"), True, "1"]),
        "top_p": st.sampled_from([0.0, 1.0, 1.1]),
        "max_tokens": st.sampled_from([3.0, 3, 0, 2.5, 10**12]),
        "stop": st.none() | _TEXT | st.lists(_TEXT, max_size=3),
        "tools": st.lists(_TOOL, max_size=2),
        "tool_choice": st.sampled_from(
            ["auto", "none", "required", {"function": {"name": "f"}}, {"function": {"name": "."}}]
        ),
        "reasoning_effort": st.sampled_from(["low", "e" * 17]),
        "functions": st.just([]),
    },
)


@given(_FIELDS)
def test_a_request_meets_converses_bounds_or_its_refusal_names_a_field(
    body: dict[str, Any],
) -> None:
    ask = Ask(Call("r", CHAT, b"", "m"), body, 1)
    refused = None
    try:
        request = converse_request(ask, "m", ("", ""), Allowed())
    except ProviderFailed as error:
        refused = error.failed
    if refused:
        assert refused.status == 400
        assert re.split(r"[.[]", refused.param)[0] in body
        return
    report = botocore.validate.ParamValidator().validate(request, _SHAPE)
    assert not report.has_errors(), report.generate_report()
    assert _faults(request, _SHAPE) == []
    assert request["messages"][0]["role"] == "user"


def _sent(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"messages": list(messages), **fields}
    return converse_request(Ask(Call("r", CHAT, b"", "m"), body, 1), "m", ("", ""), Allowed())


_HI = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize("given", ["call_65OReG|fc_0feeb", "c" * 90])
def test_a_call_and_its_result_have_the_same_substitute_for_an_id(given: str) -> None:
    function = {"name": "f", "arguments": "[1]"}
    call = {"role": "assistant", "tool_calls": [{"id": given, "function": function}]}
    result = {"role": "tool", "tool_call_id": given, "content": "42"}
    _, called, answered = _sent(_HI, call, result)["messages"]
    use = called["content"][0]["toolUse"]
    assert use["input"] == {"arguments": [1]}
    assert answered["content"][0]["toolResult"]["toolUseId"] == use["toolUseId"] != given


def test_marks_for_the_cache_keep_their_time_and_stand_behind_what_they_mark() -> None:
    hour = {"cachePoint": {"type": "default", "ttl": "1h"}}
    mark = {"type": "ephemeral", "ttl": "1h"}
    part = {"type": "text", "text": "42", "cache_control": mark}
    blank = {"type": "text", "text": "", "cache_control": mark}
    tool = {"type": "function", "function": {"name": "f"}, "cache_control": mark}
    system = {"role": "system", "content": "S", "cache_control": mark}
    result = {"role": "tool", "tool_call_id": "c", "content": [part]}
    sent = _sent(system, {"role": "user", "content": [blank, part]}, result, tools=[tool])
    assert sent["system"] == [{"text": "S"}, hour]
    (turn,) = sent["messages"]
    answered = {"toolResult": {"toolUseId": "c", "content": [{"text": "42"}]}}
    assert turn["content"] == [{"text": "42"}, hour, answered, hour]
    assert sent["toolConfig"]["tools"][1] == hour


def test_where_nobody_speaks_first_the_user_does() -> None:
    for first in ({"role": "assistant", "content": "Hello"}, {"role": "system", "content": "S"}):
        assert _sent(first)["messages"][0] == {"role": "user", "content": [{"text": "."}]}
