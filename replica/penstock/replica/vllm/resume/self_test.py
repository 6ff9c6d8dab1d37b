"""Whether this engine goes on with answers as it should: it begins some, and goes on with them from
several points as if another replica had begun them.

A device may sum up a prompt otherwise than token by token, so that two tokens that are nearly as
likely change places: a kind that fails is tried again with other words. Runs after the engine is
ready, beside what it then has to do, one call at a time, and hurts nobody by failing. What passes
(no room, no time) is no finding: it is tried again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
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
_NOT_EVERYWHERE: Final = ("schema",)
"""Kinds that some models do not answer at all."""

_WORDS: Final = ("Once upon a time", "1 2 3 4 5 6 7", "The first thing to know is")
"""Prompts, of one try each."""

_TOKENS: Final = 12
_LONGEST_S: Final = 120.0
_PAUSES_S: Final = (5.0, 10.0, 20.0, 40.0)
"""Before each further try, where one met a trouble that passes; the last of them from then on."""


class _NotOffered(Exception):
    """The model answers nothing of the kind; `str()` says why."""


class _Differs(Exception):
    """What came is not what should have; `str()` says what."""


class _Passing(Exception):
    """A trouble that says nothing of how the engine goes on; `str()` says which."""


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
    whether the test says so. `pauses_s`: before each try behind the first."""

    def __init__(
        self,
        answer: Answerer,
        model: str,
        told: Callable[[], None],
        pauses_s: Sequence[float] = _PAUSES_S,
    ) -> None:
        self.outcome: str | None = None
        self.failed = False
        self._answer = answer
        self._model = model
        self._told = told
        self._pauses_s = pauses_s
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
        wrong, passes = await self._found()
        pauses = chain(self._pauses_s, repeat(self._pauses_s[-1]))
        while passes:
            pause = next(pauses)
            log.info("the self-test is tried again in %g s: %s", pause, wrong)
            await asyncio.sleep(pause)
            wrong, passes = await self._found()
        self.outcome = f"its self-test failed: {wrong}" if wrong else ""
        self.failed = bool(wrong)
        if wrong:
            log.warning("this replica goes on with no answer of another: %s", self.outcome)
        self._told()

    async def _found(self) -> tuple[str, bool]:
        """What is wrong; empty: nothing. And whether that may be over soon."""
        try:
            async with asyncio.timeout(_LONGEST_S):
                found = [await self._kind(kind) for kind in _KINDS]
            return "; ".join(filter(None, found)), False
        except TimeoutError:
            return f"it took longer than {_LONGEST_S:g} s", True
        except _Passing as error:
            return str(error), True
        except Exception as error:
            log.debug("the self-test ended", exc_info=error)
            return f"{type(error).__name__}: {error}", False

    async def _kind(self, kind: str) -> str:
        """What is wrong with answers of a kind; empty: nothing."""
        wrong = ""
        for words in _WORDS:
            try:
                await self._try(kind, words)
            except _NotOffered as error:
                return "" if kind in _NOT_EVERYWHERE else f"{kind}: {error}"
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
        # The last one is behind the end: only usage and [DONE] are left to say.
        cuts = {1, count // 2, max(1, count - 3), max(1, count - 2)}
        for cut in sorted(cuts):
            await self._cut(call, whole, cut)

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
                case Failed():
                    raise _meaning(event, resumed=call.resume is not None)
        assert head is not None
        return _Answer(head, chunks)


def _meaning(failed: Failed, *, resumed: bool) -> Exception:
    """What a failure says of the engine. What it has answered once is offered, whoever is said to
    be at fault for the rest."""
    if failed.fault == "client" and not resumed:
        return _NotOffered(failed.message)
    text = f"{failed.code}: {failed.message}"
    passes = failed.retryable or failed.status in (503, 504)
    return _Passing(text) if passes else _Differs(text)
