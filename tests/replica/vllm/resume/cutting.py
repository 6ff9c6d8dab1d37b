"""Answers that are cut and gone on with, as a gateway would that lost the first replica."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.replica.calls.answers import events_of
from penstock.replica.engine import Engine
from penstock.replica.values import Call, Chunk, Failed, Finished, Head, Resume


@dataclass(frozen=True)
class Stream:
    """A streamed answer, whole or the rest of one."""

    head: Head
    chunks: Sequence[Chunk]
    end: Finished | Failed

    @property
    def body(self) -> bytes:
        return b"".join(chunk.body for chunk in self.chunks)

    @property
    def finished(self) -> Finished:
        assert isinstance(self.end, Finished), self.end
        return self.end

    def resume(self, count: int) -> Resume:
        """What the client has that got so many chunks."""
        had = self.chunks[:count]
        return Resume(
            tuple(group for chunk in had for group in chunk.groups),
            sum(chunk.events for chunk in had),
            self.head.created,
            self.head.cached_tokens,
        )

    def with_rest(self, count: int, rest: Stream) -> Stream:
        """What that client has in the end."""
        return replace(rest, chunks=(*self.chunks[:count], *rest.chunks))


async def streamed(engine: Engine, call: Call, *, after: int | None = None) -> Stream:
    """The whole answer, or its first chunks; its reader leaves after these."""
    head, chunks, end = None, [], None
    answer = events_of(engine.answer, replace(call, token_groups=True))
    async for event in answer:
        match event:
            case Head():
                assert head is None
                head = event
            case Chunk():
                chunks.append(event)
                if len(chunks) == after:
                    break
            case Finished() | Failed():
                end = event
    await answer.aclose()
    if after is not None:
        end = Finished(0, 0)
    assert end is not None
    return Stream(head or Head(0, ""), chunks, end)


async def gone_on(engine: Engine, call: Call, whole: Stream, count: int) -> Stream:
    """What follows on the first chunks of an answer, by an engine that goes on with it."""
    return await streamed(engine, replace(call, resume=whole.resume(count)))


def contents(stream: Stream) -> Any:
    """What an answer says, in however many events: words, calls, ends, usage, names, times."""
    events = [one for one in stream.body.decode().split("\n\n") if one]
    objects = [json.loads(one[one.index("{") :]) for one in events if "{" in one]
    rest = tuple(one for one in events if "{" not in one)
    texts: defaultdict[Any, str] = defaultdict(str)
    told: list[Any] = []
    for event in objects:
        _SAID[_kind(event)](event, texts, told)
    return dict(texts), told, rest


def _kind(event: Any) -> str:
    if "choices" in event:
        return "choices"
    return "delta" if isinstance(event.get("delta"), str) else "other"


def _choices(event: Any, texts: Any, told: list[Any]) -> None:
    beside = {k: v for k, v in event.items() if k not in ("choices", "usage")}
    if beside not in told:
        told.append(beside)
    if event.get("usage") and not event["choices"]:
        told.append(event["usage"])
    for choice in event["choices"]:
        at = choice["index"]
        delta = choice.get("delta", choice)
        for name in ("content", "text", "reasoning", "role"):
            texts[at, name] += delta.get(name) or ""
        for call in delta.get("tool_calls") or ():
            for name in ("id", "type"):
                texts[at, call["index"], name] += call.get(name) or ""
            for name in ("name", "arguments"):
                texts[at, call["index"], name] += (call.get("function") or {}).get(name) or ""
        logprobs = choice.get("logprobs") or {}
        for one in logprobs.get("content") or ():
            texts[at, "logprobs"] += f"{one['token']!r} "
        for one in logprobs.get("tokens") or ():
            texts[at, "logprobs"] += f"{one!r} "
        if choice.get("finish_reason"):
            texts[at, "end"] += f"{choice['finish_reason']} {choice.get('stop_reason')}"


def _delta(event: Any, texts: Any, told: list[Any]) -> None:
    texts[event["type"], event["item_id"]] += event["delta"]


def _other(event: Any, texts: Any, told: list[Any]) -> None:
    """Events of responses and messages; those of text are one, however many."""
    event = dict(event)
    event.pop("sequence_number", None)
    response = event.get("response")
    if response and response.get("completed_at"):
        event["response"] = response | {"completed_at": 0}
    delta = event.get("delta") or {}
    for name in ("text", "partial_json", "thinking"):
        if name in delta:
            texts[event["index"], name] += delta[name]
            return
    told.append(event)


_SAID: dict[str, Callable[[Any, Any, list[Any]], None]] = {
    "choices": _choices,
    "delta": _delta,
    "other": _other,
}


def checked(whole: Stream, count: int, rest: Stream) -> bool:
    """Fails unless a client that had so many chunks has the whole answer in the end; whether it has
    it byte for byte, or in other pieces, as vLLM puts together what it takes late."""
    got = whole.with_rest(count, rest)
    assert contents(got) == contents(whole), f"cut after {count}"
    assert _figures(rest.finished) == _figures(whole.finished)
    assert rest.head.resumable == whole.head.resumable
    assert _figures_of_head(rest.head) == _figures_of_head(whole.head)
    assert _ids(got) == _ids(whole)
    return got.body == whole.body


def _figures(end: Finished) -> Any:
    return (end.prompt_tokens, end.completion_tokens, end.cached_tokens, end.finish_reasons)


def _figures_of_head(head: Head) -> Any:
    return (head.status, head.content_type, head.prompt_tokens, head.cached_tokens, head.created)


def _ids(stream: Stream) -> dict[int, list[int]]:
    ids: defaultdict[int, list[int]] = defaultdict(list)
    for chunk in stream.chunks:
        for group in chunk.groups:
            ids[group.choice] += group.token_ids
    return ids
