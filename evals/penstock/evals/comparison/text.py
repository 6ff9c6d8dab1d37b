"""Texts of models: made printable, quoted, taken apart into words, and compared. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from rapidfuzz.distance import Indel

_PARTS: Final = re.compile(r"\w+|[^\w\s]")
_RUNS: Final = re.compile(r"\s+|\w+|[^\w\s]")
# Characters of control and format that texts need: lines, and what joins letters and emoji.
_SHOWN: Final = frozenset("\n\t\u200c\u200d")
LONGEST: Final = 600
"""Characters of a text that is quoted."""
_GAP: Final = "\n[...]\n"
_UNSEEN: Final = ("Cc", "Cf", "Cs")


def whole(text: str) -> str:
    """The text with what is no character (half a surrogate pair) replaced, so that it can be
    written."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, most: int) -> str:
    """The text, of whose middle as much is left out as it has too many characters."""
    if len(text) <= most:
        return text
    half = (most - len(_GAP)) // 2
    return f"{text[:half]}{_GAP}{text[-half:]}"


def printable(text: str) -> str:
    """The text with what would not show, or turn what follows around, written as `<U+202E>`."""
    return "".join(
        f"<U+{ord(char):04X}>"
        if unicodedata.category(char) in _UNSEEN and char not in _SHOWN
        else char
        for char in text.replace("\r\n", "\n")
    )


def words(text: str) -> list[str]:
    """Words and punctuation marks, in small letters."""
    return _PARTS.findall(unicodedata.normalize("NFC", text).casefold())


def similarity(text: str, reference: str) -> float:
    """How alike two texts are, 0 to 1: twice the longest common subsequence of their words,
    divided by all their words (ROUGE-L's F1). Two empty texts are alike."""
    return float(Indel.normalized_similarity(words(text), words(reference)))


def differences(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, each with whether the other lacks it."""
    before, after = _RUNS.findall(old), _RUNS.findall(new)
    removed, added = [False] * len(before), [False] * len(after)
    for edit in Indel.editops(before, after):
        if edit.tag == "delete":
            removed[edit.src_pos] = True
        else:
            added[edit.dest_pos] = True
    return _joined(before, removed), _joined(after, added)


def _joined(parts: list[str], marked: list[bool]) -> list[tuple[str, bool]]:
    pieces: list[tuple[str, bool]] = []
    for part, mark in zip(parts, marked, strict=True):
        if pieces and pieces[-1][1] == mark:
            pieces[-1] = (pieces[-1][0] + part, mark)
        else:
            pieces.append((part, mark))
    return pieces


def fenced(text: str) -> str:
    """A stranger's text as a block that it cannot leave."""
    shown = printable(text[:LONGEST]) + (" [...]" if len(text) > LONGEST else "")
    longest = max([len(run) for run in re.findall("`+", shown)], default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def cell(text: str) -> str:
    """A stranger's text within a line of Markdown: a link or a tag of its own does not work."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", printable(text).replace("\n", " "))
