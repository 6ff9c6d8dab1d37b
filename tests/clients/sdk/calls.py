"""Calls of tools as the SDKs give them, brought to one form, so that they can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Called:
    """A call without its id, which differs from answer to answer."""

    name: str
    arguments: dict[str, Any]


def called(message: Any) -> list[Called]:
    """The calls of a whole chat answer."""
    calls = message.tool_calls or []
    assert all(call.type == "function" for call in calls)
    assert len({call.id for call in calls}) == len(calls), "two calls share an id"
    return [Called(call.function.name, json.loads(call.function.arguments)) for call in calls]


def called_in(chunks: list[Any]) -> tuple[list[Called], str | None]:
    """The calls of a streamed chat answer, its parts joined, and its finish reason.

    The id and the name of a call come once, in its first part.
    """
    names: list[str] = []
    texts: list[str] = []
    ids: list[str] = []
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    for part in (part for choice in choices for part in choice.delta.tool_calls or []):
        if part.index == len(names):
            assert part.type == "function"
            names.append(part.function.name)
            ids.append(part.id)
            texts.append("")
        else:
            assert part.index == len(names) - 1, "a part of a call that is over"
            assert not part.function.name, "a call is named twice"
        texts[part.index] += part.function.arguments or ""
    assert len(set(ids)) == len(ids), "two calls share an id"
    finished = [choice.finish_reason for choice in choices if choice.finish_reason]
    assert len(finished) == 1, f"finished {finished}"
    read = [json.loads(text) if finished != ["length"] else {"cut": text} for text in texts]
    return [Called(*each) for each in zip(names, read, strict=True)], finished[0]
