"""Programs as they are loaded: from a text, from one that ships, or from a module."""

from __future__ import annotations

import importlib
import inspect
import linecache
import traceback
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from hashlib import sha256
from types import ModuleType
from typing import Any, Final

from penstock.control.router.api import BUILTINS, VERBS, RouteDecision

Route = Callable[..., Awaitable[RouteDecision | None]]

MOST_DETAIL: Final = 200  # characters of one line for a person


class BadProgram(Exception):
    """It cannot be run: one line for a person."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can be asked."""

    digest: str
    route: Route
    uses: frozenset[str]
    filename: str  # in tracebacks
    summary: str = ""  # its docstring


def digest_of(text: str | bytes) -> str:
    """What a text is known by."""
    return sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def digest_of_module(name: str) -> str:
    """What a module is known by: its name, since what it says is the node's affair."""
    return digest_of(f"module:{name}")


def program_of(text: str, name: str = "program") -> Program:
    """Runs the text, and takes its `route`. Raises BadProgram."""
    filename = f"<{name}.py>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = ModuleType("penstock_program")
    module.__dict__.update(BUILTINS)
    try:
        exec(compile(text, filename, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise BadProgram(said(error, filename)) from error
    return _program(module, digest_of(text), filename)


def program_of_module(name: str) -> Program:
    """Imports it, and takes its `route`. Raises BadProgram."""
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise BadProgram(f"module {name}: {said(error)}") from error
    for each in BUILTINS:
        module.__dict__.setdefault(each, BUILTINS[each])
    return _program(module, digest_of_module(name), module.__file__ or "")


def said(error: BaseException, filename: str = "") -> str:
    """An exception in one line, with the program's line that it came from."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    walked = traceback.walk_tb(error.__traceback__)
    lines: list[int | None] = [
        line for frame, line in walked if frame.f_code.co_filename == filename
    ]
    if isinstance(error, SyntaxError) and error.filename == filename:
        text, lines = error.msg, [error.lineno]
    where = f" (line {lines[-1]})" if lines else ""
    name = type(error).__name__
    return printable(f"{name}: {text}" if text else name, MOST_DETAIL - len(where)) + where


def printable(text: str, most: int = MOST_DETAIL) -> str:
    """One line of no more than that, without what a terminal would obey."""
    return "".join(each if each.isprintable() else "?" for each in text[:most])


def _program(module: ModuleType, digest: str, filename: str) -> Program:
    route: Any = module.__dict__.get("route")
    if not inspect.iscoroutinefunction(route):
        raise BadProgram("it has no `async def route(request, engines, stats)`")
    uses = module.__dict__.get("USES", ())
    if not isinstance(uses, Collection) or not all(each in VERBS for each in uses):
        raise BadProgram(f"USES must be names of {', '.join(sorted(VERBS))}")
    return Program(digest, route, frozenset(uses), filename, module.__doc__ or "")
