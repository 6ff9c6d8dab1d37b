"""What messages may show: values of strangers escaped, so that they forge no line, and cut; to
strangers nothing of this machine's directories."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 200
_PATH: Final = re.compile(r"(?<![\w.:/~-])~?(?:/[^\s/:;,'\"()\[\]]+)*/([^\s/:;,'\"()\[\]]+)/?")


def shown(value: object) -> str:
    """The value as Python would write it, at most 200 characters of it."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def public_name(model: str) -> str:
    """For clients: what a model is called, by its id or, where it is a path, by its last part."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def without_places(text: str) -> str:
    """For clients: of each path in a message its last part alone."""
    return _PATH.sub(lambda path: f"…/{path[1]}", text)
