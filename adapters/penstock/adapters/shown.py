"""Values of strangers in messages: escaped, so that they forge no line, and cut."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 200


def shown(value: object) -> str:
    """The value as Python would write it, at most 200 characters of it."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


__all__ = ["shown"]
