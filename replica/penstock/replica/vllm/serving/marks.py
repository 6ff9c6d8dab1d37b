"""Penstock's marks in the messages of a request, which are read and taken off before vLLM gets it.

A mark says that its message is pinned (`prompts.py`). vLLM makes other messages of those of some
endpoints, so pinned ones are told by what becomes of them, by their distance from the end: before
the first, vLLM may add some. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.replica import prompts
from penstock.replica.prompts import is_pinned

Ends = Callable[[Sequence[Any]], list[int]]
"""How many messages vLLM has made once it has read the first, the second, ... of a request's."""

_HOLD_MESSAGES: Final = ("messages", "input")


def take_off(request: Any) -> None:
    """Takes all marks off vLLM's parsed request."""
    for one in _messages(request)[1]:
        fields = one if isinstance(one, dict) else getattr(one, "__pydantic_extra__", None)
        if fields:
            fields.pop(prompts.MARK, None)


def pinned(request: Any, body: bytes, ends: Ends | None = None) -> frozenset[int]:
    """Which of the messages that vLLM makes of the request are pinned, the last one being 1.
    `body`: what the request was made of. `ends`: none: it makes one of each."""
    if f'"{prompts.MARK}"'.encode() not in body:
        return frozenset()
    field, messages = _messages(request)
    places = [
        place for place, one in enumerate(json.loads(body).get(field) or ()) if is_pinned(one)
    ]
    if not places or not messages:
        return frozenset()
    made = ends(messages) if ends is not None else list(range(1, len(messages) + 1))
    told: set[int] = set()
    for place in places:
        before, until = made[place - 1] if place else 0, made[place]
        # What is added to the message before it pins that one.
        told |= set(range(max(0, min(before, until - 1)), until))
    return frozenset(made[-1] - place for place in told)


def _messages(request: Any) -> tuple[str, Sequence[Any]]:
    """A request's list of messages, and the field that it is in; none where it has no such list."""
    for name in _HOLD_MESSAGES:
        if name in type(request).model_fields and isinstance(one := getattr(request, name), list):
            return name, one
    return "", ()
