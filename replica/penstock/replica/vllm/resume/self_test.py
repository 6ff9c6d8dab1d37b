"""Whether this engine goes on with answers as it should: it begins some, and goes on with them from
several points as if another replica had begun them.

A device may sum up a prompt otherwise than token by token, so that two tokens that are nearly as
likely change places: a kind that fails is tried again with other words. Runs after the engine is
ready, beside what it then has to do, and hurts nobody by failing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.replica.calls.answers import Answerer, events_of
from penstock.replica.owned_tasks import OwnedTasks
from penstock.replica.values import BEFORE_ALL, Call, Chunk, Failed, Head, Resume

log = logging.getLogger(__name__)

_SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "greedy": {"temperature": 0, "ignore_eos": True},
    "seeded": {"temperature": 1, "seed": 7, "ignore_eos": True},
    "penalties": {"temperature": 0, "frequency_penalty": 1.5, "presence_penalty": 0.7},
    "schema": {
        **{"temperature": 1, "seed": 3},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "person", "schema": _SCHEMA, "strict": True},
        },
    },
}
_WORDS: Final = ("Once upon a time", "1 2 3 4 5 6 7", "The first thing to know is")
"""Prompts, of one try each."""

_TOKENS: Final = 12
_LONGEST_S: Final = 120.0


class _NotOffered(Exception):
    """The model answers nothing of the kind, so nobody can be gone on with."""


class _Differs(Exception):
    """What came is not what should have; `str()` says what."""


@dataclass(frozen=True, slots=True)
class _Answer:
    head: Head
    chunks: list[Chunk]

    def resume(self, count: int) -> Resume:
        """What a client has that got so many chunks."""
        had = self.chunks[:count]
        groups = tuple(group for chunk in had for group in chunk.groups)
        events = sum(chunk.events for chunk in had)
        return Resume(groups, events, self.head.created, self.head.cached_tokens)

    def said(self) -> tuple[Any, ...]:
        """Tokens, words, ends and usage, whatever they were told in."""
        events = b"".join(chunk.body for chunk in self.chunks).decode().split("\n\n")
        *objects, done, rest = events
        told = [json.loads(one.removeprefix("data: ")) for one in objects]
        choices = [one for event in told for one in event["choices"]]
        ids = [one for chunk in self.chunks for group in chunk.groups for one in group.token_ids]
        return (
            ids,
            "".join(one["text"] for one in choices),
            [one["finish_reason"] for one in choices if one["finish_reason"]],
            [event["usage"] for event in told if event.get("usage")],
            {event["created"] for event in told},
            (done, rest),
        )


class SelfTest:
    """Of one engine. `answer`: answers a call, whatever is known so far; `told` is called once it
    is known. `outcome`: why the engine does not go on; empty: it does; None: not known. `failed`:
    whether the test says so."""

    def __init__(self, answer: Answerer, model: str, told: Callable[[], None]) -> None:
        self.outcome: str | None = None
        self.failed = False
        self._answer = answer
        self._model = model
        self._told = told
        self._tasks = OwnedTasks()
        self._run_now: asyncio.Task[None] | None = None

    def rule_out(self, why: str) -> None:
        """There is nothing to test."""
        self.outcome = why

    def begin(self) -> None:
        """Runs it, unless its outcome is known."""
        if self.outcome is None:
            self._run_now = self._tasks.spawn(self._run())

    async def stop(self) -> None:
        """Runs it no more."""
        self._tasks.close()
        if self._run_now is not None:
            await asyncio.wait([self._run_now])

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST_S):
                found = await asyncio.gather(*(self._kind(kind) for kind in _KINDS))
            wrong = "; ".join(filter(None, found))
        except Exception as error:
            log.debug("the self-test ended", exc_info=error)
            wrong = f"{type(error).__name__}: {error}"
        self.outcome = f"its self-test failed: {wrong}" if wrong else ""
        self.failed = bool(wrong)
        if wrong:
            log.warning("this replica goes on with no answer of another: %s", self.outcome)
        self._told()

    async def _kind(self, kind: str) -> str:
        """What is wrong with answers of a kind; empty: nothing."""
        wrong = ""
        for words in _WORDS:
            try:
                await self._try(kind, words)
            except _NotOffered:
                return ""
            except _Differs as error:
                wrong = f"{kind}: {error}"
            else:
                return ""
        return wrong

    async def _try(self, kind: str, words: str) -> None:
        fields = {"prompt": words, "max_tokens": _TOKENS, "stream": True, **_KINDS[kind]}
        told = json.dumps(fields | {"stream_options": {"include_usage": True}}).encode()
        call = Call(f"self-test-{kind}", "/v1/completions", told, self._model)
        call = replace(call, priority=BEFORE_ALL, token_groups=True)
        whole = await self._answered(call)
        count = len(whole.chunks)
        cuts = {1, count // 2, max(1, count - 3)}
        await asyncio.gather(*(self._cut(call, whole, cut) for cut in sorted(cuts)))

    async def _cut(self, call: Call, whole: _Answer, cut: int) -> None:
        resumed = replace(call, resume=whole.resume(cut))
        rest = await self._answered(resumed)
        said = replace(whole, chunks=[*whole.chunks[:cut], *rest.chunks]).said()
        if said != whole.said():
            raise _Differs(f"cut after {cut} chunks it went on otherwise than it had")

    async def _answered(self, call: Call) -> _Answer:
        head, chunks = None, []
        async for event in events_of(self._answer, call):
            match event:
                case Head():
                    head = event
                case Chunk():
                    chunks.append(event)
                case Failed(fault="client"):
                    raise _NotOffered
                case Failed():
                    raise _Differs(f"{event.code}: {event.message}")
        assert head is not None
        return _Answer(head, chunks)
