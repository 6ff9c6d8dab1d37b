"""What a waiting member may become, by the command line that a cold start would have.

Reads, and changes nothing: the member waits on. What an engine's own settings rule out is its own
to say (`vllm/start/cold_starts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.replica.settings import parse_settings
from penstock.replica.values import CannotLoad
from penstock.replica.warm_pool.imports import Imported
from penstock.replica.warm_pool.process import LONGEST

_PROGRAM: Final = ["-m", "penstock.replica"]
_BEFORE: Final = 1 + len(_PROGRAM)  # words before the settings: the interpreter, the program


def settings_words(argv: Sequence[str]) -> Sequence[str]:
    """The words of a replica's command line that are its settings."""
    return argv[_BEFORE:]


def why_cold(argv: Sequence[str], imported: Imported) -> str:
    """Why a member cannot be this replica, for a person; empty: it can."""
    if list(argv[1:_BEFORE]) != _PROGRAM:
        return "it is no replica's command line"
    if sum(len(word.encode()) + 1 for word in argv) > LONGEST:
        return f"its command line is longer than {LONGEST >> 10} KiB"
    try:
        settings = parse_settings(settings_words(argv))
        if settings.engine != imported.engine:
            return f"its engine is {settings.engine}, the pool has imported {imported.engine}"
        return imported.why_cold(settings)
    except CannotLoad as error:  # a cold start tells of it where all look
        return str(error)
