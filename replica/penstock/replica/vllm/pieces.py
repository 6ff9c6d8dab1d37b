"""A long text becomes tokens piece by piece, so that others need not wait for all of it.

Each piece begins where a token of the one before ended, some way before that piece's own end, and
the two are joined where they agree on several tokens in a row: from there on both read the same,
for tokenizers split texts from left to right and look but a few words ahead. Pieces that never
agree, as of a single endless word, are joined where the second begins; their tokens still spell
the text.
Pure: it knows a tokenizer by what it makes of a text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    tokenizer puts around every text."""

    ids: list[int]
    spans: list[tuple[int, int]]
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()

    def since(self, first: int) -> Tokens:
        """Without those before `first`."""
        return replace(self, ids=self.ids[first:], spans=self.spans[first:])

    def moved(self, by: int) -> Tokens:
        """The same of a text that begins so much further on."""
        return replace(self, spans=[(start + by, end + by) for start, end in self.spans])


Encode = Callable[[str], Awaitable[Tokens]]
"""Makes tokens of a piece."""


async def tokens_of(text: str, encode: Encode, enough: int | None = None) -> Tokens:
    """All tokens of the text, without where they lie; where these are more than `enough`, the first
    so many at least, and the rest is not looked at."""
    piece = first = await encode(text[:PIECE])
    made: list[int] = []
    end = PIECE
    while end < len(text) and (enough is None or len(made) <= enough):
        sure, start = _sure(piece, end)
        made += piece.ids[:sure]
        rest, end = piece.since(sure), start + PIECE
        piece = (await encode(text[start:end])).moved(start)
        old, new = _meeting(rest, piece)
        made += rest.ids[:old]
        piece = piece.since(new)
    return replace(first, ids=made + piece.ids, spans=[], behind=piece.behind)


def _sure(piece: Tokens, end: int) -> tuple[int, int]:
    """How many tokens of a piece that ends there stay whatever follows, and where the last of them
    ends; a character may be several tokens, which stay together."""
    spans, least = piece.spans, end - PIECE // 2
    for count in range(len(spans), 0, -1):
        stop = spans[count - 1][1]
        if stop <= end - _OVERLAP and (count == len(spans) or spans[count][0] >= stop):
            return (count, stop) if stop >= least else (count, end - _OVERLAP)
    return 0, end - _OVERLAP


def _meeting(old: Tokens, new: Tokens) -> tuple[int, int]:
    """From which token on the second may be read instead of the first, as counted in each."""
    starts: dict[int, int] = {}
    for place, (start, _) in enumerate(new.spans):
        starts.setdefault(start, place)
    for place, (start, _) in enumerate(old.spans[: 1 - _SAME]):
        other = starts.get(start)
        if other is not None and _agree(old, place, new, other):
            return place, other
    return 0, 0


def _agree(old: Tokens, place: int, new: Tokens, other: int) -> bool:
    ours, theirs = slice(place, place + _SAME), slice(other, other + _SAME)
    return old.ids[ours] == new.ids[theirs] and old.spans[ours] == new.spans[theirs]


__all__ = ["PIECE", "Encode", "Tokens", "tokens_of"]
