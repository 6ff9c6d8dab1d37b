"""Long texts in pieces, with a tokenizer of words."""

from __future__ import annotations

import re

import pytest

from penstock.replica.vllm.fairness.pieces import PIECE, Encode, Pieces, Tokens

_BEGIN, _END = 1, 2


class _Words:
    """A token for each few letters or spaces and each other thing, and one around each text."""

    def __init__(self) -> None:
        self.pieces: list[int] = []

    def read(self, text: str) -> Tokens:
        found = list(re.finditer(r" ?[a-z]{1,7}|\s{1,9}(?!\S)|.", text, re.DOTALL))
        ids = [3 + hash(one.group()) for one in found]
        return Tokens(ids, [one.span() for one in found], (_BEGIN,), (_END,))

    def encode(self, text: str) -> Tokens:
        self.pieces.append(len(text))
        return self.read(text)


def _made(text: str, encode: Encode, enough: int | None = None) -> Tokens:
    pieces = Pieces(text, encode, enough)
    while not pieces.done:
        pieces.step()
    return pieces.tokens()


_TEXTS = [
    "",
    "short",
    "the quick brown fox, and a  dog;\n\n" * 2000,
    "nobreaksatall" * 4000,
    " " * 40_000,
    "a" * PIECE,
    "héllo wörld " * 3000,
    ("x" * 900 + " ") * 50,
]


@pytest.mark.parametrize("text", _TEXTS)
def test_pieces_have_the_tokens_that_the_whole_text_has(text: str) -> None:
    words = _Words()
    made = _made(text, words.encode)
    whole = words.read(text)
    assert (made.before, made.ids, made.behind) == (whole.before, whole.ids, whole.behind)
    assert max(words.pieces) <= PIECE


def test_what_has_enough_tokens_is_not_read_to_its_end() -> None:
    words = _Words()
    made = _made("ab " * 100_000, words.encode, 5000)
    assert len(made.ids) > 5000
    assert sum(words.pieces) < 10 * PIECE


def test_pieces_that_never_agree_still_spell_the_text() -> None:
    rounds = iter(range(1, 100))

    def encode(text: str) -> Tokens:
        size = next(rounds) + 10
        spans = [(at, min(at + size, len(text))) for at in range(0, len(text), size)]
        return Tokens([start * 1000 + size for start, _ in spans], spans)

    text = "z" * (3 * PIECE)
    made = _made(text, encode)
    assert sum(one % 1000 for one in made.ids) - len(text) in range(1000)
