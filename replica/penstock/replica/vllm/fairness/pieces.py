"""A long text becomes tokens piece by piece, so that others need not wait for all of it.

Each piece begins where a token of the one before ended, some way before that piece's own end, and
the two are joined where they agree on several tokens in a row: from there on both read the same,
for tokenizers split texts from left to right and look but a few words ahead. Pieces that never
agree, as of a single endless word, are joined where the second begins; their tokens still spell
the text.
Pure: it knows a tokenizer by what it makes of a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

PIECE: Final = 8192
"""Characters of a piece: some 12 ms."""

_OVERLAP: Final = 512
"""Characters that a piece and the next one have in common at least."""

_SAME: Final = 4
"""Tokens on which two pieces have to agree."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text and where each lies in it; before and behind them those that the
    tokenizer puts around every text. `start`: where the text itself lies in a longer one."""

    ids: list[int]
    spans: list[tuple[int, int]]
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    start: int = 0

    def since(self, first: int) -> Tokens:
        """Without those before `first`."""
        return replace(self, ids=self.ids[first:], spans=self.spans[first:])


Encode = Callable[[str], Tokens]
"""Makes tokens of a piece."""


class Pieces:
    """A text on its way to tokens: `step` until it is done, on any thread, one after the other.

    `enough`: tokens of which a few more are made at most; none: all are.
    """

    def __init__(self, text: str, encode: Encode, enough: int | None = None) -> None:
        self._text = text
        self._encode = encode
        self._enough = enough
        self._made: list[int] = []
        self._first: Tokens | None = None
        self._piece = Tokens([], [])
        self._end = 0

    @property
    def done(self) -> bool:
        """Whether there is no piece left, or there are tokens enough."""
        if self._first is None:
            return False
        enough = self._enough is not None and len(self._made) > self._enough
        return enough or self._end >= len(self._text)

    def step(self) -> None:
        """Makes the tokens of one piece more."""
        if self._first is None:
            self._first = self._piece = self._encode(self._text[:PIECE])
            self._end = PIECE
            return
        sure, start = _sure(self._piece, self._end)
        self._made += self._piece.ids[:sure]
        rest, self._end = self._piece.since(sure), start + PIECE
        piece = replace(self._encode(self._text[start : self._end]), start=start)
        old, new = _meeting(rest, piece)
        self._made += rest.ids[:old]
        self._piece = piece.since(new)

    def tokens(self) -> Tokens:
        """All that were made, without where they lie."""
        around = self._first or self._piece
        ids = self._made + self._piece.ids
        return Tokens(ids, [], around.before, self._piece.behind)


def _sure(piece: Tokens, end: int) -> tuple[int, int]:
    """How many tokens of a piece that ends there stay whatever follows, and where the last of them
    ends; a character may be several tokens, which stay together."""
    spans, most, least = piece.spans, end - _OVERLAP - piece.start, end - PIECE // 2 - piece.start
    for count in range(len(spans), 0, -1):
        stop = spans[count - 1][1]
        if stop <= most and (count == len(spans) or spans[count][0] >= stop):
            return count, piece.start + (stop if stop >= least else most)
    return 0, end - _OVERLAP


def _meeting(old: Tokens, new: Tokens) -> tuple[int, int]:
    """From which token on the second may be read instead of the first, as counted in each."""
    starts: dict[int, int] = {}
    for place, (start, _) in enumerate(new.spans):
        starts.setdefault(start, place)
    for place, (start, _) in enumerate(old.spans[: 1 - _SAME]):
        other = starts.get(start + old.start - new.start)
        if other is not None and _agree(old, place, new, other):
            return place, other
    return 0, 0


def _agree(old: Tokens, place: int, new: Tokens, other: int) -> bool:
    ours, theirs = slice(place, place + _SAME), slice(other, other + _SAME)
    if old.ids[ours] != new.ids[theirs]:
        return False
    by = old.start - new.start
    moved = [(start + by, end + by) for start, end in old.spans[ours]]
    return moved == new.spans[theirs]
