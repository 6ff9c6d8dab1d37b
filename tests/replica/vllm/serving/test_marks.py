"""Marks in messages, on requests as vLLM has parsed them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from penstock.replica.vllm.serving import marks

_PIN = {"penstock": {"pin": True}}


class Item(BaseModel):
    """One of the models that keep what they do not know."""

    model_config = ConfigDict(extra="allow")
    text: str


class Chat(BaseModel):
    messages: list[dict[str, Any]]


class Response(BaseModel):
    input: str | list[Item | dict[str, Any]]


def _user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def _body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_marks_are_taken_off_whatever_they_say() -> None:
    request = Chat(messages=[_user("a", **_PIN), _user("b", penstock=7), _user("c")])
    marks.take_off(request)
    assert request.messages == [_user("a"), _user("b"), _user("c")]
    response = Response(input=[Item.model_validate({"text": "a", **_PIN})])
    marks.take_off(response)
    assert isinstance(response.input, list)
    assert response.input[0] == Item(text="a")
    marks.take_off(Response(input="penstock"))


def test_pinned_messages_are_told_from_the_end() -> None:
    messages = [_user("a", **_PIN), _user("b"), _user("c", **_PIN), _user("d", penstock=True)]
    assert marks.pinned(Chat(messages=messages), _body(messages=messages)) == {4, 2}
    plain = [_user("penstock")]
    assert marks.pinned(Chat(messages=plain), _body(messages=plain)) == frozenset()


def test_where_one_becomes_several_all_of_them_are_pinned_and_where_it_is_added_that_one() -> None:
    items = [_user("a"), _user("b", **_PIN), _user("c"), _user("d", **_PIN)]
    request = Response(input=[Item(text="x")] * 4)
    # "b" becomes two, "d" is added to what "c" has become.
    pinned = marks.pinned(request, _body(input=items), lambda _: [1, 3, 4, 4])
    assert pinned == {3, 2, 1}


def test_only_the_list_counts_that_the_request_has() -> None:
    body = _body(messages=[_user("a", **_PIN)], input=[_user("b")])
    assert marks.pinned(Response(input=[_user("b")]), body) == frozenset()
    assert marks.pinned(Response(input="text"), _body(input='"penstock"')) == frozenset()
