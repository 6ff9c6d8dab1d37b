"""The simulated engine trims in C++ what `trimming.fitted` trims in Python, to the message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.replica import prompts
from penstock.replica.calls.answers import events_of
from penstock.replica.calls.inbox import Inbox
from penstock.replica.simulated.engine import SimulatedEngine
from penstock.replica.trimming import Conversation, fitted
from penstock.replica.values import Call, Event, Failed, Finished, Head

_IDS = st.sampled_from(["a", "b", ""])
_WORDS = st.integers(0, 12).map(lambda count: "word " * count)
_MARKS = st.sampled_from([{}, {}, {"penstock": {"pin": True}}, {"penstock": {"pin": "yes"}}])


def _said(role: st.SearchStrategy[str], **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.fixed_dictionaries({"role": role, "content": _WORDS, **more})
    return st.builds(lambda message, mark: message | mark, fields, _MARKS)


_CALLS = st.lists(_IDS.map(lambda name: {"id": name}), max_size=2)
_MESSAGES = st.lists(
    _said(st.sampled_from(["user", "user", "assistant", "system", "developer", "odd"]))
    | _said(st.sampled_from(["assistant", "user"]), tool_calls=_CALLS)
    | _said(st.sampled_from(["tool", "tool", "user"]), tool_call_id=_IDS),
    min_size=1,
    max_size=16,
)


@st.composite
def _asking(draw: st.DrawFn) -> tuple[list[Any], int]:
    """A chat, and a budget that is near what some of its turns have."""
    messages = draw(_MESSAGES)
    conversation = Conversation(prompts.read(messages))
    kept = conversation.kept(draw(st.integers(0, conversation.cuts)))
    near = _tokens([messages[place] for place in kept]) + draw(st.sampled_from([0, 0, -1, 1, 7]))
    return messages, max(1, near)


def _tokens(messages: Sequence[Any]) -> int:
    """As the simulated engine counts: each word, and each role."""
    return sum(1 + len(one["content"].split()) for one in messages)


def _tokens_at(messages: Sequence[Any], places: Sequence[int]) -> int:
    return _tokens([messages[place] for place in places])


async def _events(engine: SimulatedEngine, messages: list[Any], budget: int) -> list[Event]:
    body = json.dumps({"messages": messages, "max_tokens": 1}).encode()
    path = "/v1/chat/completions"
    call = Call("r", path, body, "m", max_prompt_tokens=budget, trim=True)
    return [event async for event in events_of(engine.answer, call)]


async def _answers(asked: list[tuple[list[Any], int]]) -> list[list[Event]]:
    inbox = Inbox()
    engine = SimulatedEngine("m", "served", (), {}, inbox)
    inbox.open()
    try:
        await engine.start()
        return [await _events(engine, messages, budget) for messages, budget in asked]
    finally:
        inbox.close()
        await engine.stop()


@settings(deadline=None, max_examples=30)
@given(st.lists(_asking(), min_size=1, max_size=10))
def test_the_same_messages_go(asked: list[tuple[list[Any], int]]) -> None:
    for (messages, budget), events in zip(asked, asyncio.run(_answers(asked)), strict=True):
        fit = fitted(prompts.read(messages), budget, partial(_tokens_at, messages))
        if fit is None:
            assert isinstance(events[-1], Failed)
            assert events[-1].code == "token_budget_exceeded"
            continue
        head, end = events[0], events[-1]
        assert isinstance(head, Head)
        assert isinstance(end, Finished)
        assert head.trimmed_messages == len(messages) - len(fit.kept)
        assert head.trimmed_tokens == fit.whole - fit.tokens
        assert end.prompt_tokens == fit.tokens
