"""How large an answer may be, relative to what was asked for. Pure."""

from __future__ import annotations

from typing import Final

from penstock.replica.providers.requests import completion_limit
from penstock.replica.providers.values import Ask

_UNARY: Final = 32 << 20
_STREAM: Final = 256 << 20
_OF_A_TOKEN: Final = 8 << 10
"""An event of its own with twenty likely others."""
_OF_ANY: Final = 1 << 20
_MOST_CHOICES: Final = 4096


def choices_of(ask: Ask) -> int:
    """How many choices a request asks for: as many for each of its prompts."""
    asked, prompts = ask.body.get("n"), ask.body.get("prompt")
    for_each = int(asked) if isinstance(asked, int | float) else 1
    if isinstance(prompts, list) and any(isinstance(one, str | list) for one in prompts):
        return for_each * len(prompts)
    return for_each


def most_bytes(ask: Ask) -> int:
    """Bytes of an answer, whole or streamed, beyond which its provider is not to be believed."""
    most = _STREAM if ask.stream else _UNARY
    _, tokens = completion_limit(ask.call, ask.body)
    if not tokens:
        return most
    return min(most, _OF_ANY + _OF_A_TOKEN * tokens * min(choices_of(ask), _MOST_CHOICES))
