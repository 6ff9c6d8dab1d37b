"""How large an automaton a grammar in EBNF or Lark makes, estimated from its text. Pure.

Counted repeats inside each other multiply, whether by parentheses or by rules that reach each
other; those side by side add up. The text is read once, with the words that xgrammar's lexer
knows, blanks and comments between any two of them: a string literal and a class hide what is in
them. A grammar that is none is left to vLLM, which refuses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 4_000
"""The largest estimate that is let through: three repeats of 16 in each other are just above, and
hold a core for most of a second."""

_HUGE: Final = 1 << 40

_GAP: Final = r"(?:\s++|\#[^\r\n]*+)*+"
_COUNT: Final = r"\{_\+?+(?P<least>\d*+)_(?:,_\+?+(?P<most>\d*+)_)?+\}"  # {3}, {3,5}; _: a gap

_TOKEN: Final = re.compile(
    rf"""(?P<gap>\s++|\#[^\r\n]*+)
      | (?P<name>[A-Za-z_][\w.-]*+)
      | (?P<is>::=)
      | (?P<atom>"(?:[^"\\\r\n]++|\\.)*+"?+|\[(?:[^\]\\\r\n]++|\\.)*+\]?+)
      | (?P<open>\()
      | (?P<close>\))
      | (?P<many>{_COUNT.replace("_", _GAP)})
      | (?P<other>.)""",
    re.X | re.S,
)

_LARK: Final = re.compile(
    _COUNT.replace("_", r"\s*+")
    + r"|~\s*+(?P<lark_least>\d++)(?:\s*+\.\.\s*+(?P<lark_most>\d++))?+"
)
_LARK_COMMENT: Final = re.compile(r"(?:\#|//)[^\r\n]*+")

_Name = str | int  # a rule's name, or the number of a pair of parentheses


@dataclass(slots=True)
class _Piece:
    """A rule, a pair of parentheses or a character, as it stands in another, so many times."""

    what: _Name | None = None
    times: int = 1

    def size(self, nested: Mapping[_Name, int]) -> int:
        """Repeats written out, with those inside it."""
        inside = 1 if self.what is None else nested.get(self.what, 1)
        return min(self.times * inside, _HUGE)


@dataclass(slots=True)
class _Reader:
    """Takes one word after the other. Parentheses are rules whose names are numbers."""

    rules: dict[_Name, list[_Piece]] = field(default_factory=lambda: {"": []})
    within: list[_Name] = field(default_factory=lambda: [""])

    def take(self, token: re.Match[str]) -> None:
        pieces = self.rules[self.within[-1]]
        match token.lastgroup:
            case "name":
                pieces.append(_Piece(token["name"]))
            case "is" if pieces and isinstance(name := pieces[-1].what, str):
                pieces.pop()
                self.rules.setdefault(name, [])
                self.within = [name]
            case "atom":
                pieces.append(_Piece())
            case "open":
                number = len(self.rules)
                pieces.append(_Piece(number))
                self.rules[number] = []
                self.within.append(number)
            case "close" if len(self.within) > 1:
                self.within.pop()
            case "many" if pieces:
                times = max(_number(token["most"] or token["least"]), 1)
                pieces[-1].times = min(pieces[-1].times * times, _HUGE)
            case _:
                pass


def size(text: str) -> int:
    """The estimate. What vLLM takes for Lark, which is all without `::=`, is not read so closely:
    there the three largest repeats count as if one were in the other, with what may be comments
    and without it."""
    if "::=" not in text:
        return max(_lark_size(text), _lark_size(_LARK_COMMENT.sub("", text)))
    reader = _Reader()
    for token in _TOKEN.finditer(text):
        reader.take(token)
    nested = _nested(reader.rules)
    pieces = (one for inside in reader.rules.values() for one in inside)
    return max(sum(one.size(nested) for one in pieces if one.times > 1), 1)


def _nested(rules: dict[_Name, list[_Piece]]) -> dict[_Name, int]:
    """Of each rule, the largest product of repeats that are in each other; where a rule reaches
    itself, of one turn."""
    nested: dict[_Name, int] = {}
    left = [(name, False) for name in rules]
    while left:
        name, seen = left.pop()
        if seen:
            nested[name] = max((one.size(nested) for one in rules[name]), default=1)
        elif name not in nested:
            nested[name] = 1
            left.append((name, True))
            within = {one.what for one in rules[name] if one.what is not None}
            left += [(one, False) for one in within if one in rules and one not in nested]
    return nested


def _lark_size(text: str) -> int:
    counts = sorted(
        _number(one["most"] or one["least"] or one["lark_most"] or one["lark_least"])
        for one in _LARK.finditer(text)
    )
    return min(math.prod(counts[-3:]), _HUGE)


def _number(digits: str | None) -> int:
    return min(int((digits or "0").lstrip("0")[:13] or "0"), _HUGE)
