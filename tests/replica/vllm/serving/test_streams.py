"""Cut anywhere, a stream that is gone on with says what it would have said: a model of vLLM's
serving layer, which takes outputs of several prompts in heaps, and of an engine behind it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.values import Call, Resume, TokenGroup
from penstock.replica.vllm.resume.continuation import BadResume, Bounds
from penstock.replica.vllm.serving import streams
from penstock.replica.vllm.serving.asgi import Exchange
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from tests.replica.vllm.resume.cutting import Stream, streamed

_BOUNDS = Bounds(vocabulary=1000, max_tokens=100, max_model_len=1000)

Tokens = list[list[int]]
"""Of each choice, one engine step after the other."""


@dataclass
class Answers:
    """What is asked of the model: prompts, choices of each, and their tokens, by choice."""

    prompts: int
    choices: int
    tokens: Tokens
    logprobs: bool = False
    merged: int = 1  # steps of the engine that the serving layer gets at once
    waits: list[int] = field(default_factory=lambda: [0] * 3)  # turns before each prompt is in


def _part(index: int, ids: list[int], *, last: bool) -> Any:
    return SimpleNamespace(
        index=index,
        token_ids=ids,
        finish_reason="stop" if last else None,
        stop_reason=None,
        logprobs=None,
    )


def _output(parts: list[Any], *, finished: bool = False) -> Any:
    return SimpleNamespace(
        prompt_token_ids=[1, 2, 3],
        num_cached_tokens=0,
        metrics=None,
        outputs=parts,
        finished=finished,
    )


async def _engine(
    asked: Answers, tap: CallTap, prompt: int, name: str, *, priority: int
) -> AsyncGenerator[Any, None]:
    """As vLLM's `generate`: outputs of one prompt, of all its choices in one heap per step."""
    for _ in range(asked.waits[prompt]):
        await asyncio.sleep(0)
    first = prompt * asked.choices
    left = {at: deque(asked.tokens[first + at]) for at in range(asked.choices)}
    if tap.continuation is not None:
        begun = tap.continuation.request(name)
        for place, group in begun.groups:
            end = bool(group.finish_reason)
            part = _part(group.choice - first, list(group.token_ids), last=end)
            begun.outputs.append((place, _output([part])))
            for _ in group.token_ids:
                left[group.choice - first].popleft()
        if begun.outputs:
            yield _output([], finished=begun.is_over())
    while any(left.values()):
        await asyncio.sleep(0)
        parts = []
        for at, ids in left.items():
            if ids:
                some = [ids.popleft() for _ in range(min(asked.merged, len(ids)))]
                parts.append(_part(at, some, last=not ids))
        yield _output(parts, finished=not any(left.values()))


async def _merged(*iterators: AsyncGenerator[Any, None]) -> AsyncIterator[tuple[int, Any]]:
    """As vLLM's `merge_async_iterators`, what is done taken last first."""
    pending = {asyncio.ensure_future(anext(it)): (i, it) for i, it in enumerate(iterators)}
    while pending:
        done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for one in sorted(done, key=lambda done: -pending[done][0]):
            i, it = pending.pop(one)
            try:
                item = await one
            except StopAsyncIteration:
                continue
            pending[asyncio.ensure_future(anext(it))] = (i, it)
            yield i, item


class App:
    """The serving layer: an event for each choice's part, one more ahead of its first, some held
    back with the next, and one at the end."""

    def __init__(self, asked: Answers) -> None:
        self._asked = asked
        self._held: dict[int, list[int]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        tap = CURRENT.get()
        assert tap is not None
        await send({"type": "http.response.start", "status": 200, "headers": []})
        generators = [self._outputs(tap, prompt) for prompt in range(self._asked.prompts)]
        async for prompt, output in _merged(*generators):
            for part in output.outputs:
                choice = prompt * self._asked.choices + part.index
                for event in self._events(choice, part):
                    await send({"type": "http.response.body", "body": event})
        await send({"type": "http.response.body", "body": b"done"})

    def _events(self, choice: int, part: Any) -> list[bytes]:
        events = []
        if choice not in self._held:
            self._held[choice] = []
            events.append(f"{choice} begins;".encode())
        held = self._held[choice]
        held += part.token_ids
        if held[-1] % 5 or part.finish_reason:
            events.append(f"{choice} {held} {part.finish_reason};".encode())
            held.clear()
        return events

    def _outputs(self, tap: CallTap, prompt: int) -> AsyncGenerator[Any, None]:
        asked, name = self._asked, f"r-{prompt}"
        params = SimpleNamespace(
            n=asked.choices,
            output_kind=SimpleNamespace(name="DELTA"),
            num_logprobs=1 if asked.logprobs else None,
            thinking_token_budget=None,
            prompt_logprobs=None,
        )
        first = tap.begin(asked.choices)
        assert streams.note_kind(tap, {"type": "token"}, params, resumes=True)
        ask: streams.Ask = partial(_engine, asked, tap, prompt, name)
        if tap.continuation is not None:
            tap.continuation.begin(name, first, asked.choices, 3, _BOUNDS)
            ask = partial(streams.replayed_first, tap, name, ask)
        return streams.one_by_one(tap, partial(tap.saw, first), ask(priority=0))


@dataclass
class _Serving:
    """As much of an engine as answers."""

    asked: Answers

    async def answer(self, call: Call, sink: Any) -> None:
        await Exchange(App(self.asked), call.path, CallTap(call), sink).run()


def _said(stream: Stream) -> dict[str, list[str]]:
    """Of each choice what it says, in however many events; under "" what no choice does."""
    said: dict[str, list[str]] = {}
    for event in filter(None, stream.body.decode().split(";")):
        choice, _, words = event.partition(" ")
        said.setdefault(choice, []).append(words)
    return {choice: [_joined(words)] for choice, words in said.items()}


def _joined(words: list[str]) -> str:
    return " ".join(words).replace("] None [", ", ")


def _streamed(asked: Answers, resume: Resume | None = None) -> Stream:
    call = Call("r", "/v1/completions", b"", "m", resume=resume)
    engine: Any = _Serving(asked)
    return asyncio.run(streamed(engine, call))


_WAITS = st.lists(st.integers(0, 9), min_size=3, max_size=3)


@st.composite
def _asked(draw: st.DrawFn) -> Answers:
    prompts, choices = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    ids = st.lists(st.integers(1, 999), min_size=1, max_size=6)
    count = prompts * choices
    tokens = draw(st.lists(ids, min_size=count, max_size=count))
    merged = draw(st.integers(1, 2))
    return Answers(prompts, choices, tokens, draw(st.booleans()), merged, draw(_WAITS))


@given(_asked(), st.data())
def test_cut_anywhere_it_says_what_it_would_have_said(asked: Answers, data: st.DataObject) -> None:
    whole = _streamed(asked)
    cut = data.draw(st.integers(1, len(whole.chunks)))
    resume = whole.resume(cut)
    asked.waits = data.draw(_WAITS)
    rest = _streamed(asked, resume)
    got = whole.with_rest(cut, rest)
    assert _said(got) == _said(whole)
    ids = [group for chunk in got.chunks for group in chunk.groups]
    for choice, tokens in enumerate(asked.tokens):
        of_choice = [group for group in ids if group.choice == choice]
        assert [one for group in of_choice for one in group.token_ids] == tokens
    assert sum(chunk.tokens for chunk in got.chunks) == sum(map(len, asked.tokens))
    assert rest.finished.completion_tokens == whole.finished.completion_tokens
    assert rest.finished.finish_reasons == whole.finished.finish_reasons
    assert rest.head.cached_tokens == whole.head.cached_tokens


@given(_asked(), st.data())
def test_cut_twice_it_says_what_it_would_have_said(asked: Answers, data: st.DataObject) -> None:
    whole = _streamed(asked)
    first = data.draw(st.integers(1, len(whole.chunks)))
    once = whole.with_rest(first, _streamed(asked, whole.resume(first)))
    second = data.draw(st.integers(first, len(once.chunks)))
    twice = once.with_rest(second, _streamed(asked, once.resume(second)))
    assert _said(twice) == _said(whole)


def test_with_log_probabilities_what_one_output_became_is_one_chunk() -> None:
    asked = Answers(1, 1, [[1, 2, 3]], logprobs=True)
    whole = _streamed(asked)
    assert [chunk.events for chunk in whole.chunks] == [2, 1, 1, 1]
    assert [len(chunk.groups) for chunk in whole.chunks] == [1, 1, 1, 0]


def test_more_events_than_the_tokens_make_are_refused_before_anything_new() -> None:
    asked = Answers(1, 1, [[1, 2, 3, 4]])
    resume = Resume((TokenGroup(0, (1,)),), 3, 0, 0)
    with pytest.raises(BadResume, match="events that its tokens do not make"):
        asyncio.run(_failing(asked, resume))


def test_more_events_than_the_answer_has_are_refused() -> None:
    asked = Answers(1, 1, [[1]])
    ended = _streamed(asked, Resume((TokenGroup(0, (1,), "stop"),), 9, 0, 0))
    assert (ended.end.code, ended.chunks) == ("bad_resume", [])  # type: ignore[union-attr]


async def _failing(asked: Answers, resume: Resume) -> None:
    """Has the serving layer's own error out, which the replica's client would tell of."""
    call = Call("r", "/v1/completions", b"", "m", token_groups=True, resume=resume)
    tap = CallTap(call)
    token = CURRENT.set(tap)
    try:
        await App(asked)({}, None, _swallowed(tap))
    finally:
        CURRENT.reset(token)


def _swallowed(tap: CallTap) -> Any:
    async def send(message: Any) -> None:
        if "body" in message and tap.apart is not None:
            tap.apart.keeps(message["body"])

    return send
