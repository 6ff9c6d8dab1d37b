"""Declared fields for people: as they type them, as `--help` lists them, as a table of the docs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from enum import EnumType
from html import escape
from textwrap import wrap
from typing import Any, Final, get_origin

from penstock.control.declared.fields import Leaf

WIDTH, INDENT = 74, 26  # what a terminal of 80 columns shows of a docstring unbroken
BEGIN: Final = " " * 6  # of a line, as docstrings of verbs have it


def typed(leaf: Leaf, text: str) -> Any:
    """What somebody typed, as the admin API takes it: lists with commas between, else JSON or,
    where it is none, the text."""
    if leaf.kind is str:
        return text
    if get_origin(leaf.kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return json_of(text)


def json_of(text: str) -> Any:
    """A value that is typed as JSON; the text where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def key_list(
    leaves: Iterator[Leaf], *, names: Mapping[str, str] | None = None, **defaults: Any
) -> str:
    """A line for each field: "name=default  what it is". `names`: as users type them where that is
    otherwise; `defaults`: likewise."""
    lines: list[str] = []
    for leaf in leaves:
        name = (names or {}).get(leaf.name, leaf.name)
        key = f"{name}={defaults.get(leaf.name, shown_default(leaf))}"
        first, *rest = wrap(_typing(leaf), WIDTH - INDENT, break_long_words=False) or [""]
        if len(key) > INDENT - 2:
            lines.append(key)
            key = ""
        lines += [f"{key:<{INDENT}}{first}", *(" " * INDENT + each for each in rest)]
    return "\n".join(f"{BEGIN}{line}".rstrip() for line in lines).lstrip()


def table(leaves: Iterator[Leaf]) -> str:
    """The fields as Markdown."""
    return "\n".join(["| setting | default | what it is |", "|---|---:|---|", *map(_row, leaves)])


def _row(leaf: Leaf) -> str:
    text = escape(_text(leaf), quote=False)
    return f"| `{leaf.name}` | {_code(shown_default(leaf))} | {text} |"


def listing(**lists: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Puts lists into a verb's docstring where it names them in braces."""

    def decorated(verb: Callable[..., None]) -> Callable[..., None]:
        for name, text in lists.items():
            verb.__doc__ = (verb.__doc__ or "").replace(f"{{{name}}}", text)
        return verb

    return decorated


def shown_default(leaf: Leaf) -> str:
    """The default as users type it."""
    if leaf.default is None:
        return "null"
    if isinstance(leaf.default, float):
        return f"{leaf.default:g}"
    return "" if leaf.default in (MISSING, ()) else str(leaf.default)


def _typing(leaf: Leaf) -> str:
    if leaf.declared.shape:
        return f"{leaf.declared.shape}: {_text(leaf)}"
    plain = get_origin(leaf.kind) is tuple and leaf.declared.form is None
    return _text(leaf) + ("; with commas between" if plain else "")


def _text(leaf: Leaf) -> str:
    choices = leaf.kind if isinstance(leaf.kind, EnumType) else leaf.declared.choices
    return leaf.declared.description + (f" ({', '.join(map(str, choices))})" if choices else "")


def _code(text: str) -> str:
    if not text:
        return "none"
    return text if text.replace(".", "", 1).isdigit() else f"`{text}`"
