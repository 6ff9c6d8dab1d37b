"""The messages of a chat as JSON has them, for whoever trims them: their marks, and what trimming
has to know of each.

Messages of any shape can be read: what is wrong with them is told by who answers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from penstock.replica.trimming import Fit, Message, fitted

MARK: Final = "penstock"
"""The field of a message that is for Penstock alone: `{"pin": true}` keeps the message."""

_BYTES_PER_TOKEN: Final = 4
_TOKENS_OF_MEDIA: Final = 1000


def is_pinned(message: Any) -> bool:
    """Whether its mark says that a message stays. A mark of any other shape says nothing."""
    mark = message.get(MARK) if isinstance(message, Mapping) else None
    return isinstance(mark, Mapping) and mark.get("pin") is True


def without_marks(messages: Iterable[Any]) -> list[Any]:
    """The messages as models and providers may see them; those without a mark are the same."""
    return [
        {name: value for name, value in one.items() if name != MARK}
        if isinstance(one, Mapping) and MARK in one
        else one
        for one in messages
    ]


def read(messages: Iterable[Any]) -> list[Message]:
    """What trimming has to know of a chat's messages."""
    return [_read(one) if isinstance(one, Mapping) else Message("") for one in messages]


def estimate(value: Any) -> int:
    """Tokens of a value as JSON has it, roughly: a quarter of the bytes of its texts and names, a
    thousand for each picture, sound or file."""
    texts, media = _texts(value)
    size = sum(len(text.encode(errors="replace")) for text in texts)
    return -(-size // _BYTES_PER_TOKEN) + media * _TOKENS_OF_MEDIA


def trimmed(messages: Sequence[Any], budget: int) -> tuple[list[Any], Fit] | None:
    """The messages of a chat that stay within so many tokens, as they are estimated, without their
    marks, and how many went; None where what has to stay is too much."""
    bare = without_marks(messages)
    sizes = [estimate(one) for one in bare]
    fit = fitted(read(messages), budget, lambda places: sum(sizes[place] for place in places))
    return None if fit is None else ([bare[place] for place in fit.kept], fit)


def _read(message: Mapping[str, Any]) -> Message:
    role = str(message.get("role", ""))
    return Message(
        role=role,
        pinned=is_pinned(message),
        calls=_calls(message) if role == "assistant" else (),
        result_of=str(message.get("tool_call_id") or "") if role == "tool" else "",
        size=1 + estimate(message),
    )


def _calls(message: Mapping[str, Any]) -> tuple[str, ...]:
    calls = message.get("tool_calls")
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return ()
    ids = (str(call.get("id") or "") for call in calls if isinstance(call, Mapping))
    return tuple(filter(None, ids))


def _texts(value: Any) -> tuple[list[str], int]:
    """All texts and names in a value of any depth, numbers as texts; and how many media."""
    texts: list[str] = []
    media, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            texts += map(str, one)
            media += sum(name in _MEDIA for name in one)
            left += [part for name, part in one.items() if name not in _MEDIA]
        elif isinstance(one, list | tuple):
            left += one
        elif one is not None:
            texts.append(str(one))
    return texts, media


_MEDIA: Final = ("image_url", "input_audio", "audio_url", "video_url", "file")
"""Names of what is no text in a part of a message."""
