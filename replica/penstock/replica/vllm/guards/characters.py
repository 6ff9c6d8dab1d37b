"""Which characters a place of a pattern takes, as a set of bits. Pure.

ASCII is told apart, everything else is one character. A set may be too large, never too small: what
is not understood is every character.
"""

from __future__ import annotations

import re
from typing import Final

EVERY: Final = (1 << 129) - 1
_OTHER: Final = 1 << 128

_PIECE: Final = re.compile(
    r"\\x(?P<x>[0-9a-fA-F]{2})|\\u(?P<u>[0-9a-fA-F]{4})|(?P<prop>\\[pP])|\\(?P<escaped>.)|(?P<one>.)",
    re.S,
)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0", "a": "\a"}


def _of(text: str) -> int:
    bits = 0
    for character in text:
        bits |= 1 << ord(character) if ord(character) < 128 else _OTHER
    return bits


_DIGITS: Final = _of("0123456789")
_WORD: Final = _DIGITS | _of("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACE: Final = _of(" \t\n\r\f\v\x1c\x1d\x1e\x1f")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}


def taken_by(atom: str) -> int:
    """The characters of one atom: a character, an escape, a class in brackets, or a dot."""
    if atom == ".":
        return EVERY
    if not atom.startswith("["):
        return _of_piece(_PIECE.match(atom))
    if len(atom) < 3 or not atom.endswith("]"):
        return EVERY
    negated = atom[1] == "^"
    inside = _of_class(atom[2 if negated else 1 : -1])
    # Of what is not ASCII, a part may be left.
    return EVERY & ~inside | _OTHER if negated else inside


def _of_class(text: str) -> int:
    """What a class lists. Where a range is not of two characters, all."""
    bits = 0
    pieces = list(_PIECE.finditer(text))
    at = 0
    while at < len(pieces):
        is_range = at + 2 < len(pieces) and pieces[at + 1]["one"] == "-"
        if is_range:
            first, last = _code(pieces[at]), _code(pieces[at + 2])
            if first is None or last is None:
                return EVERY
            bits |= _of("".join(map(chr, range(first, min(last, 127) + 1))))
            bits |= _OTHER if last > 127 else 0
            at += 3
        else:
            bits |= _of_piece(pieces[at])
            at += 1
    return bits


def _of_piece(piece: re.Match[str] | None) -> int:
    if piece is None:
        return EVERY
    escaped = piece["escaped"]
    if escaped and escaped.lower() in _CLASSES:
        named = _CLASSES[escaped.lower()]
        return named | _OTHER if escaped.islower() else EVERY & ~named
    code = _code(piece)
    return EVERY if code is None else _of(chr(code))


def _code(piece: re.Match[str]) -> int | None:
    """The one character that it stands for; nothing where it stands for several."""
    if digits := piece["x"] or piece["u"]:
        return int(digits, 16)
    if piece["one"] is not None:
        return ord(piece["one"])
    escaped = piece["escaped"]
    if escaped is None or (escaped.isalnum() and escaped not in _CONTROLS):
        return None
    return ord(_CONTROLS.get(escaped, escaped))
