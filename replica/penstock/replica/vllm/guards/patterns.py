"""How large an automaton a regex makes, estimated from its text. Pure.

What makes vLLM's grammars slow is not a pattern's length, but how many of its places can be meant
by the same text at once: counted repeats inside counted repeats of things that may be empty, one
loop after the other, words of any length with an optional blank between them. The measure here is
the number of places, counted repeats written out, times the number that may be alive at once: where
the next character says whether a part goes on or has ended, only one of the two is.

The scanner knows groups, classes, escapes and quantifiers, which all dialects share; a pattern that
is none is left to vLLM, which refuses it. It reads no character twice, whatever is left open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.replica.vllm.guards import characters

MOST: Final = 50_000
"""The largest estimate that is let through; what is measured to take over a second is above."""

_HUGE: Final = 1 << 40
_DEEPEST: Final = 100
_MOST_IDLE: Final = 1

_TOKEN: Final = re.compile(
    r"""(?P<atom>\\[pP]\{[^{}\\]*+\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.
               |\[(?:[^\]\\]++|\\.)*+\]?+)
      | (?P<open>\((?:\?(?:[:=!]|<[=!]|P?<\w++>))?)
      | (?P<close>\))
      | (?P<either>\|)
      | (?P<many>(?:[*+?]|\{(?P<least>\d*+)(?P<comma>,?+)(?P<most>\d*+)\})[?+]?)
      | (?P<other>.)""",
    re.X | re.S,
)


_ANCHORS: Final = ("^", "$", r"\b", r"\B")


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a pattern: its places, those that may be alive at once, whether its length may
    differ and be nothing, whether it has an end, and how many endless repeats of endless repeats
    are in it, all of which may turn round on nothing.

    `first`: characters that it may begin with. `goes_on`: those with which it may go on where it
    may also end; nothing is an end, too. `clear`: wherever a text is, it is in one place."""

    places: int = 0
    alive: int = 0
    varies: bool = False
    empty: bool = True
    endless: bool = False
    idle: int = 0
    first: int = 0
    goes_on: int = 0
    clear: bool = True

    def then(self, other: _Part) -> _Part:
        """One after the other: the text may be in both where the first may end anywhere, unless the
        next character tells."""
        tells = self.clear and not self.goes_on & other.first
        both = (self.varies or self.empty) and not tells
        return _Part(
            min(self.places + other.places, _HUGE),
            min(self.alive + other.alive, _HUGE) if both else max(self.alive, other.alive),
            self.varies or other.varies,
            self.empty and other.empty,
            self.endless or other.endless,
            self.idle + other.idle,
            self.first | other.first if self.empty else self.first,
            self.goes_on | other.first | other.goes_on if other.empty else other.goes_on,
            tells and other.clear,
        )

    def either(self, other: _Part) -> _Part:
        """One or the other. Words part soon; what may go on for ever does not, unless it begins
        otherwise."""
        alike = self.first & other.first
        looping = self.varies and other.varies and (alike or not (self.clear and other.clear))
        ends = (other.first if self.empty else 0) | (self.first if other.empty else 0)
        return _Part(
            min(self.places + other.places, _HUGE),
            min(self.alive + other.alive, _HUGE) if looping else max(self.alive, other.alive),
            self.varies or other.varies,
            self.empty or other.empty,
            self.endless or other.endless,
            self.idle + other.idle,
            self.first | other.first,
            characters.EVERY if alike else self.goes_on | other.goes_on | ends,
            self.clear and other.clear and not alike,
        )

    def repeated(self, least: int, most: int | None) -> _Part:
        """So many times, or without end. Of what varies in length each turn may be meant, unless
        the next character tells."""
        times = least + 1 if most is None else most
        tells = self.clear and not self.goes_on & self.first
        each = (self.varies or self.empty) and not tells
        alive = self.alive * max(times, 2) if each else self.alive
        return _Part(
            min(self.places * times, _HUGE),
            min(alive, _HUGE),
            self.varies or most != least,
            self.empty or not least,
            self.endless or most is None,
            self.idle + (most is None and self.empty and self.endless),
            self.first,
            self.goes_on if most == least else self.goes_on | self.first,
            tells,
        )


def _atom(text: str) -> _Part:
    if text in _ANCHORS:
        return _Part(1, 1)
    taken = characters.taken_by(text)
    return _Part(1, 1, empty=False, first=taken)


_NOTHING: Final = _Part()


def size(pattern: str) -> int:
    """The estimate. A pattern nested deeper than any that is meant counts as huge."""
    open_groups: list[tuple[_Part | None, _Part]] = []  # of each group: alternatives, what is read
    branches: _Part | None = None
    read, last = _NOTHING, _NOTHING
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "many" if last != _NOTHING:
                last = _repeat(last, token)
                continue
            case "open":
                open_groups.append((branches, read.then(last)))
                branches, read, last = None, _NOTHING, _NOTHING
            case "either":
                branches = _joined(branches, read.then(last))
                read, last = _NOTHING, _NOTHING
            case "close" if open_groups:
                group = _joined(branches, read.then(last))
                branches, read = open_groups.pop()
                last = group
            case _:
                read, last = read.then(last), _atom(token[0])
        if len(open_groups) > _DEEPEST:
            return _HUGE
    whole = _joined(branches, read.then(last))
    if whole.idle > _MOST_IDLE:
        return _HUGE
    return min(whole.places * max(whole.alive, 1), _HUGE)


def _joined(branches: _Part | None, last: _Part) -> _Part:
    return last if branches is None else branches.either(last)


def _repeat(part: _Part, token: re.Match[str]) -> _Part:
    text = token["many"]
    if text[0] != "{":
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[text[0]]
        return part.repeated(least, most)
    low = _number(token["least"])
    high = _number(token["most"]) if token["most"] else None
    return part.repeated(low, high if token["comma"] else low)


def _number(digits: str) -> int:
    return min(int(digits.lstrip("0")[:13] or "0"), _HUGE)
