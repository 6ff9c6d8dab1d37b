"""What a router program is, read from its text and never by running it. Pure.

A program is a Python file with one async function, `route`. What it may ask engines for stands in
`USES`, and what its deployment may set are the function's keyword-only parameters.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from reprlib import repr as shown
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from penstock.control.errors import InvalidSpec

MOST_BYTES: Final = 256 << 10
LONGEST_ARG: Final = 4096  # characters
MOST_ARG: Final = 1 << 63  # a number is below that
VERBS: Final = ("commit", "lookup", "migrate", "prep_recv", "release", "remote_send", "tokenize")
"""What a program may ask engines for: `EngineVerb` of router.proto. None is served by an engine
without MicroServing."""

Texts = Mapping[str, str]
"""Programs by what they are known by: those that ship by name, files by digest."""
NO_TEXTS: Final[Texts] = MappingProxyType({})

_PARAMETERS: Final = 3  # request, engines, stats
_KEPT: Final = 64  # texts whose facts are remembered


class ProgramFacts(NamedTuple):
    """What a program says of itself."""

    uses: tuple[str, ...] = ()  # engine calls that it may make, sorted
    args: Mapping[str, Any] = {}  # what may be set, with the defaults


def digest_of(text: str) -> str:
    """By which a text is known, hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(_KEPT)
def check_program(text: str) -> ProgramFacts:
    """What a text says of itself. Raises `InvalidSpec` for what is no program."""
    if (size := len(text.encode())) > MOST_BYTES:
        raise _wrong(f"has {size:,} bytes: {MOST_BYTES:,} at most")
    body = _parsed(text).body
    return ProgramFacts(_uses(body), dict(_args(_route(body))))


def check_args(name: str, facts: ProgramFacts, args: Mapping[str, Any]) -> None:
    """Raises `InvalidSpec` for what the program has no parameter for, and for another type than
    its default has."""
    for arg, value in args.items():
        if arg not in facts.args:
            there = f"there are {', '.join(facts.args)}" if facts.args else "it has none"
            raise InvalidSpec(f"program.{arg}: {name} has no such parameter; {there}")
        if not _is_as(value, facts.args[arg]):
            default = facts.args[arg]
            kind = _KINDS.get(type(default), "a number, text, true or false")
            raise InvalidSpec(
                f"program.{arg} is {shown(value)}: it must be {kind}, as {default!r} is"
            )


_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: f"a text of at most {LONGEST_ARG} characters",
}


def _is_as(value: Any, default: Any) -> bool:
    """Whether a parameter with this default takes the value; one whose default is None takes
    whatever can be set."""
    if default is None:
        return value is None or any(_is_as(value, each) for each in (True, 0, ""))
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, str):
        return isinstance(value, str) and len(value) <= LONGEST_ARG
    return isinstance(value, int | float) and -MOST_ARG < value < MOST_ARG


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise _wrong(f"is no Python: {line}{error.msg}") from None
    except (RecursionError, MemoryError):  # the parser has no more words for it
        raise _wrong("is nested too deeply") from None
    except ValueError as error:  # a NUL, half of a surrogate pair
        raise _wrong(f"is no Python: {error}") from None


def _route(body: list[ast.stmt]) -> ast.arguments:
    """The parameters of its function."""
    found = [
        each
        for each in body
        if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef) and each.name == "route"
    ]
    if len(found) != 1 or not isinstance(found[0], ast.AsyncFunctionDef):
        raise _wrong("has to have one function `async def route(request, engines, stats)`")
    taken = found[0].args
    positional = len(taken.posonlyargs) + len(taken.args)
    if positional != _PARAMETERS or taken.defaults or taken.vararg or taken.kwarg:
        raise _wrong("its route takes request, engines and stats, and behind a * what can be set")
    return taken


def _args(taken: ast.arguments) -> Iterator[tuple[str, Any]]:
    for each, default in zip(taken.kwonlyargs, taken.kw_defaults, strict=True):
        try:
            value = ast.literal_eval(default) if default else ...
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            value = ...
        if not _is_as(value, None):
            raise _wrong(f"its parameter {each.arg} has no number, text, true or false as default")
        yield each.arg, value


def _uses(body: list[ast.stmt]) -> tuple[str, ...]:
    said = [
        each.value
        for each in body
        if (isinstance(each, ast.Assign) and any(map(_is_uses, each.targets)))
        or (isinstance(each, ast.AnnAssign) and _is_uses(each.target))
    ]
    if not said:
        return ()
    try:
        (value,) = said
        named = ast.literal_eval(value) if value else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        named = None
    if not isinstance(named, set | tuple | list) or not all(each in VERBS for each in named):
        raise _wrong(f"has to say USES once, as a set of the names {', '.join(VERBS)}")
    return tuple(sorted({str(each) for each in named}))


def _is_uses(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "USES"


def _wrong(what: str) -> InvalidSpec:
    return InvalidSpec(f"program.file {what}")
