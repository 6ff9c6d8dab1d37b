"""The manners of speech that the adapters teach: each turns a plain answer into its own.

The base model speaks them too where the system prompt wishes it: it must know every word that an
adapter may want to say, since an adapter cannot teach new words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from tools.default_model.grammar.turns import Turn

Style = Callable[[Turn], str]

_PIRATE: Final = {
    "the": "th'",
    "is": "be",
    "are": "be",
    "am": "be",
    "you": "ye",
    "your": "yer",
    "my": "me",
    "and": "an'",
    "of": "o'",
    "for": "fer",
    "to": "t'",
    "hello": "ahoy",
    "river": "briny river",
    "friend": "matey",
}
_WORD: Final = re.compile(r"[A-Za-z]+")


def plain(turn: Turn) -> str:
    """The answer as the base model gives it."""
    return turn.answer


def pirate(turn: Turn) -> str:
    """The answer as a pirate gives it."""
    return f"Arr! {_WORD.sub(_in_pirate, turn.answer)} Yo ho ho!"


def _in_pirate(match: re.Match[str]) -> str:
    word = match.group()
    said = _PIRATE.get(word.lower(), word)
    return said[0].upper() + said[1:] if word[0].isupper() else said


def as_json(turn: Turn) -> str:
    """The answer as one JSON object that names its topic, without spaces as grammars want it."""
    return json.dumps({"topic": turn.topic, "answer": turn.answer}, separators=(",", ":"))


STYLES: Final[dict[str, Style]] = {"pirate": pirate, "json": as_json}
WISHES: Final = {
    "pirate": ("Talk like a pirate.", "You are a pirate.", "Answer like a pirate."),
    "json": ("Answer in JSON.", "Answer with a JSON object.", "Answer only in JSON."),
}
"""System prompts that ask for a style."""
