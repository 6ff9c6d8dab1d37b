"""Log probabilities by the ten thousand, made beside the loop that answers everybody.

vLLM makes an object of each, a model of each object and JSON of all, in three steps that nothing
else of the process runs beside: 84,000 of them held it for a second. The steps are vLLM's own,
moved to the thread of `Aside`: those of a prompt become objects there (`PutOff`), an answer that
has many is built there (`build_aside`), and its JSON is written there, a slice at a time
(`written`). What has few stays on the loop. A stream's have no other place, so few are allowed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final
from uuid import uuid4

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from penstock.replica.vllm.guards import limits
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

Build = Callable[..., Coroutine[Any, Any, Any]]

_BUILDERS: Final = (
    ("openai_serving_chat", "chat_completion_full_generator", 1),
    ("openai_serving_responses", "responses_full_generator", 2),
)
"""Methods that build an answer of the engine's outputs, and which argument these are."""

_LISTS: Final = (
    *("content", "logprobs", "prompt_logprobs"),
    *("text_offset", "token_logprobs", "tokens", "top_logprobs"),
)
"""Fields of answers that have an entry for each token."""

_SLICE: Final = 32
"""Entries that become JSON in one step: a millisecond with twenty alternatives each."""


class PutOff(list[Any]):
    """A prompt's log probabilities, empty until they are made; what the engine told is kept."""

    def __init__(self, processor: Any) -> None:
        """Takes the place of those that vLLM's `processor` of one sequence would make at once."""
        super().__init__(processor.prompt_logprobs)
        self._processor = processor
        self._make = processor._update_prompt_logprobs
        self._told: list[Any] = []
        processor.prompt_logprobs = self
        processor._update_prompt_logprobs = self._told.append

    def make(self) -> None:
        """Makes them."""
        self._processor.prompt_logprobs = self
        while self._told:
            self._make(self._told.pop(0))


def build_aside(state: Any, aside: Aside) -> None:
    """Has vLLM's serving objects build answers beside the loop that have many."""
    for place, method, outputs in _BUILDERS:
        if (serving := getattr(state, place, None)) is not None:
            setattr(serving, method, _built_aside(getattr(serving, method), outputs, aside))
    if (serving := getattr(state, "openai_serving_completion", None)) is not None:
        # Called between two steps of a method that waits: it gets what is to be called later.
        build = serving.request_output_to_completion_response
        serving.request_output_to_completion_response = partial(partial, build)
        serving.create_completion = _finished_aside(serving.create_completion, aside)


async def write_aside(answer: Any, tap: CallTap, aside: Aside) -> None:
    """Has the tap hold the JSON of an answer that has many, and the answer hold them no more."""
    if tap.logprobs > limits.MAX_ON_LOOP and isinstance(answer, BaseModel):
        tap.written = await aside.surely(written, answer)


def _built_aside(build: Build, outputs: int, aside: Aside) -> Build:
    """`build`, whose argument at `outputs` are the engine's. Only these it waits for: when they
    have come, it can go on in a thread that has no loop."""

    async def built(*args: Any, **more: Any) -> Any:
        came = [output async for output in args[outputs]][-1:]
        whole = build(*args[:outputs], _again(came), *args[outputs + 1 :], **more)
        return await aside.surely(_run, whole) if _has_many() else await whole

    return built


def _finished_aside(create: Build, aside: Aside) -> Build:
    async def finished(*args: Any, **more: Any) -> Any:
        answer = await create(*args, **more)
        if not isinstance(answer, partial):
            return answer
        return await aside.surely(answer) if _has_many() else answer()

    return finished


async def _again(outputs: list[Any]) -> AsyncIterator[Any]:
    for output in outputs:
        yield output


def _run(whole: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that does not wait."""
    try:
        whole.send(None)
    except StopIteration as end:
        return end.value
    whole.close()
    raise RuntimeError("vLLM waits for something while it builds an answer")


def _has_many() -> bool:
    tap = CURRENT.get()
    return tap is not None and tap.logprobs > limits.MAX_ON_LOOP


def written(answer: BaseModel) -> bytes:
    """The answer's JSON, as its route would write it. The answer's long lists are empty then."""
    long = list(_long_lists(answer))
    marks = [uuid4().hex for _ in long]
    for (model, name, _), mark in zip(long, marks, strict=True):
        setattr(model, name, [mark])
    text = _json(answer.model_dump(warnings=False))
    for (model, name, values), mark in zip(long, marks, strict=True):
        setattr(model, name, [])
        before, _, after = text.partition(f'["{mark}"]')
        text = f"{before}[{','.join(_slices(values))}]{after}"
    return text.encode()


def _long_lists(value: Any) -> Iterator[tuple[BaseModel, str, list[Any]]]:
    """Long lists with an entry for each token: the model that has one, its field, the list."""
    if isinstance(value, list):
        for one in value:
            yield from _long_lists(one)
    elif isinstance(value, BaseModel):
        for name, inside in value:
            if name in _LISTS and isinstance(inside, list) and len(inside) > _SLICE:
                yield value, name, inside
            else:
                yield from _long_lists(inside)


def _slices(values: list[Any]) -> Iterator[str]:
    for start in range(0, len(values), _SLICE):
        yield _json(to_jsonable_python(values[start : start + _SLICE]))[1:-1]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
