"""Strangers' texts on the page: what a model or a dataset said, printable, escaped, cut. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from penstock.evals.comparison.text import differences, printable

LONGEST: Final = 3000
"""Characters of one text that the page shows; the JSON has all."""


def shown(text: str) -> str:
    """A stranger's text for the page."""
    rest = len(text) - LONGEST
    cut = escape(printable(text[:LONGEST]))
    return f'{cut}<span class="cut"> [{rest:,} more characters]</span>' if rest > 0 else cut


def asked(messages: Iterable[Mapping[str, str]]) -> Iterable[str]:
    """A conversation, a paragraph a message."""
    for message in messages:
        role = "" if message["role"] == "user" else f"{message['role']}: "
        yield f'<p class="asked"><span class="note">{role}</span>{shown(message["content"])}</p>'


def answers(old: str, new: str, *, marked: bool) -> tuple[str, str]:
    """Both answers, where `marked` with what the other does not have."""
    if not marked or max(len(old), len(new)) > LONGEST:
        return _answer(shown(old)), _answer(shown(new))
    before, after = differences(old, new)
    return _answer(_pieces(before)), _answer(_pieces(after))


def _pieces(pieces: Iterable[tuple[str, bool]]) -> str:
    return "".join(f"<mark>{shown(text)}</mark>" if mark else shown(text) for text, mark in pieces)


def _answer(html: str) -> str:
    return f'<div class="answer" dir="auto">{html or "<i>an empty answer</i>"}</div>'
