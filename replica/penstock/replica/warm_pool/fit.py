"""What a waiting member may become, by the command line that a cold start would have. Pure, but
for a look at the model's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.replica.settings import Settings, parse_settings
from penstock.replica.values import CannotLoad
from penstock.replica.warm_pool.process import LONGEST

_PROGRAM: Final = ["-m", "penstock.replica"]
_BEFORE: Final = 1 + len(_PROGRAM)  # words before the settings: the interpreter, the program


def settings_words(argv: Sequence[str]) -> Sequence[str]:
    """The words of a replica's command line that are its settings."""
    return argv[_BEFORE:]


def unfit(argv: Sequence[str], engine: str) -> str:
    """Why a member that has imported `engine` cannot be this replica; empty: it can."""
    if list(argv[1:_BEFORE]) != _PROGRAM:
        return "it is no replica's command line"
    if sum(len(word.encode()) + 1 for word in argv) > LONGEST:
        return f"its command line is longer than {LONGEST >> 10} KiB"
    try:
        settings = parse_settings(settings_words(argv))
        return _unfit(settings, engine)
    except CannotLoad as error:  # a cold start tells of it where all look
        return str(error)


def _unfit(settings: Settings, engine: str) -> str:
    if settings.engine != engine:
        return f"its engine is {settings.engine}, the pool has imported {engine}"
    return ""
