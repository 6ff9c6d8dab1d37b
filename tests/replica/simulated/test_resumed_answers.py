"""Whatever a client has of an answer, and however its `Resume` is bent: the rest of that very
answer comes, or none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.calls.answers import events_of
from penstock.replica.calls.inbox import Inbox
from penstock.replica.simulated.engine import SimulatedEngine
from penstock.replica.values import (
    AdapterSource,
    Call,
    Chunk,
    Failed,
    Finished,
    Head,
    Resume,
    TokenGroup,
)

_CHAT, _COMPLETION = "/v1/chat/completions", "/v1/completions"


@asynccontextmanager
async def _running() -> AsyncIterator[SimulatedEngine]:
    inbox = Inbox()
    adapter = AdapterSource("pirate@1", digest="d" * 64)
    engine = SimulatedEngine("m", "served", (adapter,), {"answer_tokens": "9"}, inbox)
    inbox.open()
    try:
        await engine.start()
        yield engine
    finally:
        inbox.close()
        await engine.stop()


@dataclass(frozen=True, slots=True)
class _Seen:
    """An answer, or a part of it."""

    head: Head
    events: list[bytes]
    groups: list[TokenGroup]
    end: Finished


async def _ask(engine: SimulatedEngine, call: Call) -> _Seen | Failed:
    told = [event async for event in events_of(engine.answer, call)]
    head, end = told[0], told[-1]
    if isinstance(head, Failed):
        return head
    assert isinstance(head, Head)
    assert isinstance(end, Finished)
    chunks = [event for event in told if isinstance(event, Chunk)]
    events = [event + b"\n\n" for chunk in chunks for event in chunk.body.split(b"\n\n")[:-1]]
    groups = [group for chunk in chunks for group in chunk.groups]
    assert sum(chunk.events for chunk in chunks) == len(events)
    assert sum(chunk.tokens for chunk in chunks) == len(groups)
    return _Seen(head, events, groups, end)


@st.composite
def _calls(draw: st.DrawFn) -> Call:
    path = draw(st.sampled_from([_CHAT, _COMPLETION]))
    text = draw(st.text(max_size=30))
    body: dict[str, Any] = {"stream": True, "prompt": text}
    if path == _CHAT:
        body["messages"] = [{"role": "user", "content": text}]
    if draw(st.booleans()):
        body["stream_options"] = {"include_usage": True}
    if draw(st.booleans()):
        body["return_token_ids"] = True
    if limit := draw(st.one_of(st.just(0), st.integers(1, 20), st.integers(60, 300))):
        body["max_tokens"] = limit
    body["stop"] = draw(st.lists(st.sampled_from([" a", "river", "zzz"]), max_size=2))
    data = json.dumps(body).encode()
    adapter = draw(st.sampled_from(["", "pirate@1"]))
    return Call(draw(st.text(max_size=9)), path, data, "m", adapter=adapter, token_groups=True)


def _had(whole: _Seen, call: Call, events: int) -> Resume:
    roles = 1 if call.path == _CHAT else 0
    groups = tuple(whole.groups[: max(0, events - roles)])
    return Resume(groups, events, whole.head.created, whole.head.cached_tokens)


def _is_the_rest(rest: _Seen | Failed, whole: _Seen, had: Resume) -> None:
    assert isinstance(rest, _Seen), rest
    assert rest.events == whole.events[had.events :]
    assert rest.groups == whole.groups[len(had.groups) :]
    assert rest.head == whole.head
    told = ("prompt_tokens", "completion_tokens", "cached_tokens", "finish_reasons")
    for name in told:
        assert getattr(rest.end, name) == getattr(whole.end, name)


@given(call=_calls(), data=st.data())
def test_any_beginning_of_any_stream_gives_the_rest(call: Call, data: st.DataObject) -> None:
    async def holds() -> None:
        async with _running() as engine:
            whole = await _ask(engine, call)
            assert isinstance(whole, _Seen), whole
            for _ in range(4):
                had = _had(whole, call, data.draw(st.integers(0, len(whole.events))))
                rest = await _ask(engine, replace(call, resume=had))
                _is_the_rest(rest, whole, had)

    asyncio.run(holds())


_GROUPS = st.builds(
    TokenGroup,
    choice=st.sampled_from([0, 0, 0, 1]),
    token_ids=st.lists(st.integers(0, 120), max_size=2).map(tuple),
    finish_reason=st.sampled_from(["", "", "stop", "length"]),
    stop_reason=st.sampled_from(["", "", "a"]),
)


@st.composite
def _bent(draw: st.DrawFn, had: Resume) -> Resume:
    """A `Resume` that is mostly as it should be."""
    groups = list(had.groups)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(groups)))
        new = draw(
            st.lists(st.one_of(_GROUPS, st.sampled_from([*had.groups, *groups])), max_size=2)
            if had.groups or groups
            else st.lists(_GROUPS, max_size=2)
        )
        groups[at : at + draw(st.integers(0, 2))] = new
    events = draw(st.one_of(st.just(had.events), st.integers(0, had.events + 5)))
    created = draw(st.sampled_from([had.created, had.created, 0, -1]))
    return Resume(tuple(groups), events, created, had.cached_tokens)


@given(call=_calls(), data=st.data())
def test_no_resume_makes_a_wrong_answer(call: Call, data: st.DataObject) -> None:
    async def holds() -> None:
        async with _running() as engine:
            whole = await _ask(engine, call)
            assert isinstance(whole, _Seen), whole
            had = _had(whole, call, data.draw(st.integers(0, len(whole.events))))
            bent = data.draw(_bent(had))
            rest = await _ask(engine, replace(call, resume=bent))
            if isinstance(rest, Failed):
                assert rest.code == "bad_resume"
                assert rest.fault == "upstream"
            else:
                assert list(bent.groups) == whole.groups[: len(bent.groups)]
                _is_the_rest(rest, whole, bent)

    asyncio.run(holds())
