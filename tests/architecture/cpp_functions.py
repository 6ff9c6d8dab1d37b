"""Finds the functions of C++ text by its braces: enough to count their lines, no parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Comments, raw strings, strings and characters: whatever may hold a brace that opens nothing.
NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)\"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
CALLABLE = re.compile(r"(~?[\w:]+|operator[^\s(]+)\s*\(", re.DOTALL)
# `: name_{...}` of a constructor, which is no body.
INITIALISER = re.compile(r"\)[^>]*(?<!:)[:,](?!:)\s*[\w:<>]+\s*$", re.DOTALL)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Function:
    """One function with a body."""

    name: str
    line: int  # of its opening brace, from 1
    lines: int  # from there to the closing one


def functions(text: str) -> Iterator[Function]:
    """Every function of a source; those inside another, lambdas above all, are part of it."""
    code = DIRECTIVE.sub(blank, without_noise(text))
    depth, since = 0, 0
    inside: tuple[int, str, int] | None = None  # depth, name and opening brace of a function
    initialiser: int | None = None  # depth of a constructor's braced initialiser
    for found in re.finditer(r"[{};]", code):
        at, opens = found.start(), found.group() == "{"
        if opens and inside is None and initialiser is None:
            head = code[since:at]
            if INITIALISER.search(head):
                initialiser = depth
            elif name := function_name(head):
                inside = (depth, name, at)
        depth += {"{": 1, "}": -1, ";": 0}[found.group()]
        closes = found.group() == "}"
        if closes and inside is not None and inside[0] == depth:
            first = code.count("\n", 0, inside[2])
            yield Function(inside[1], first + 1, code.count("\n", 0, at) - first + 1)
            inside = None
        if initialiser is None:
            since = at + 1
        elif closes and initialiser == depth:
            initialiser = None


def without_noise(text: str) -> str:
    """The source without comments and literals, on the same lines."""
    return NOISE.sub(blank, text)


def blank(found: re.Match[str]) -> str:
    """As many lines, and nothing in them."""
    return "\n" * found.group().count("\n") or " "


def function_name(head: str) -> str | None:
    """Whose body a brace opens, by the text between the last statement and it."""
    named = CALLABLE.search(head)
    if named is None or SCOPE.search(head) or re.search(r"=\s*$", head):
        return None
    return named.group(1)
