"""Messages of a chat as JSON has them: marks, and what of them has to stay together."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.replica import prompts
from penstock.replica.trimming import Message

_PIN = {"penstock": {"pin": True}}
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "penstock")
_MESSAGES = st.lists(
    _VALUES | st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=5), max_size=8
)


def _user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def test_a_mark_pins_a_message_and_is_not_seen_by_anybody_else() -> None:
    pinned, plain = _user("kept", **_PIN), _user("plain")
    assert prompts.is_pinned(pinned)
    bare = prompts.without_marks([pinned, plain])
    assert bare == [_user("kept"), plain]
    assert bare[1] is plain
    assert pinned == _user("kept", **_PIN)


def test_a_mark_of_another_shape_pins_nothing_and_is_taken_off_too() -> None:
    for mark in (True, None, "pin", ["pin"], {"pin": 1}, {"pin": "true"}, {"pin": False}, {}):
        marked = _user("text", penstock=mark)
        assert not prompts.is_pinned(marked)
        assert prompts.without_marks([marked]) == [_user("text")]


def test_calls_and_results_are_read_from_who_may_have_them() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "tool_call_id": "b", "tool_calls": [call], "content": "x"},
    ]
    told = [(one.role, one.calls, one.result_of) for one in prompts.read(messages)]
    assert told == [("assistant", ("a", "b"), ""), ("tool", (), "a"), ("user", (), "")]


@given(_MESSAGES)
def test_messages_of_any_shape_are_read(messages: list[Any]) -> None:
    read = prompts.read(messages)
    assert len(read) == len(messages)
    assert all(isinstance(one, Message) for one in read)
    bare = prompts.without_marks(messages)
    assert not any(isinstance(one, dict) and "penstock" in one for one in bare)
    assert prompts.trimmed(messages, 1 << 40) is not None


def test_without_a_tokenizer_four_bytes_are_a_token() -> None:
    assert prompts.estimate("x" * 400) == 100
    assert prompts.estimate("ü" * 200) == 100
    assert prompts.estimate({"content": ["a" * 93]}) == 25


def test_a_picture_counts_as_a_thousand_tokens_whatever_its_size() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert 1000 < prompts.estimate([part]) < 1020


def test_the_oldest_turns_go_until_the_rest_is_within_the_budget() -> None:
    messages = [
        {"role": "system", "content": "s" * 40},
        _user("a" * 400),
        {"role": "assistant", "content": "b" * 400},
        _user("c" * 400, **_PIN),
        {"role": "assistant", "content": "d" * 400},
        _user("e" * 40),
    ]
    found = prompts.trimmed(messages, 200)
    assert found is not None
    kept, fit = found
    assert kept == [messages[0], _user("c" * 400), messages[5]]
    assert fit.kept == (0, 3, 5)
    assert fit.tokens <= 200 < fit.whole


def test_what_has_to_stay_and_is_too_much_is_told_as_that() -> None:
    assert prompts.trimmed([_user("x" * 4000)], 100) is None
