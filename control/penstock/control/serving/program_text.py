"""A router program as users type it: a name, a file, or a module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.control.declared.listing import json_of
from penstock.control.errors import invalid_setting

PROGRAM: Final = "program"
_ARG: Final = "program."
_MODULE: Final = "module:"


def without_program(said: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """What is said of other things, and of the program as the API takes it: `program=X` and
    `program.ARG=Y`. Reads its file. Raises `invalid-setting`."""
    others = {k: v for k, v in said.items() if k != PROGRAM and not k.startswith(_ARG)}
    args = {k.removeprefix(_ARG): json_of(v) for k, v in said.items() if k.startswith(_ARG)}
    if PROGRAM not in said:
        return others, {PROGRAM: {"args": args}} if args else {}
    if not said[PROGRAM]:
        return others, {PROGRAM: None}
    return others, {PROGRAM: _named(said[PROGRAM]) | ({"args": args} if args else {})}


def _named(text: str) -> dict[str, Any]:
    if text.startswith(_MODULE):
        return {"module": text.removeprefix(_MODULE)}
    if not text.endswith(".py") and "/" not in text:
        return {"name": text}
    try:
        return {"file": Path(text).read_text()}
    except OSError as error:
        raise invalid_setting(f"program is {text}: {error.strerror}") from error
    except ValueError as error:
        raise invalid_setting(f"program is {text}, which is no text: {error}") from error
