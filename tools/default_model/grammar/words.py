"""Names of places, people and things, known ones and random ones.

Many are random syllables, so that what the model learns is to copy, not these names.
"""

from __future__ import annotations

from random import Random
from typing import Final


def listed(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


_CONSONANTS: Final = "bcdfghjklmnprstvwz"
_VOWELS: Final = "aeiou"
_PLACES: Final = listed(
    "Berlin Paris Rome Madrid Lisbon Vienna Warsaw Athens London Dublin Oslo Stockholm Tokyo Cairo "
    "Ottawa Boston Chicago Seattle Denver Dallas Austin Miami Toronto Sydney Melbourne Munich "
    "Hamburg Zurich Geneva Milan Prague Budapest Helsinki Copenhagen Amsterdam Brussels Moscow "
    "Istanbul Delhi Mumbai Beijing Shanghai Seoul Singapore Nairobi Lagos Lima Bogota Santiago"
)
_LONG_PLACES: Final = (
    "San Francisco",
    "New York",
    "Los Angeles",
    "Buenos Aires",
    "Cape Town",
    "Hong Kong",
    "New Delhi",
    "San Francisco, CA",
    "Boston, MA",
    "Paris, France",
    "Berlin, Germany",
    "Tokyo, Japan",
    "London, UK",
)
_WORDS: Final = listed(
    "red blue green cheap quick small old new famous best long round river planet moon token "
    "gateway replica stream adapter fox foxes owl bear story music apple bread water light stone "
    "house sun snow tree word film book phone garden table pizza train bridge window letter game "
    "camera hotel pasta city history science energy market price recipe language model engine "
    "python rust vllm openai paper news weather flights shoes cats dogs history "
    "of the in for to best how what is"
)


WEEK: Final = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_ARGUMENTS: Final = listed("name title text to subject id key color day topic message user file")


def half(rng: Random) -> bool:
    """True half of the time."""
    return rng.random() < 0.5


def argument(rng: Random) -> str:
    """The name of an argument of a tool."""
    return syllables(rng) if half(rng) else rng.choice(_ARGUMENTS)


def syllables(rng: Random, most: int = 3, endings: str = "nlrsx") -> str:
    """A word that nobody has said before, in small letters; one of the endings, or none."""
    made = (
        rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.randrange(1, most + 1))
    )
    return "".join(made) + rng.choice(("", "", *tuple(endings)))


def place(rng: Random) -> str:
    """A town."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(_PLACES)
    if kind < 0.65:
        return rng.choice(_LONG_PLACES)
    return syllables(rng).capitalize()


def phrase(rng: Random, most: int = 4) -> str:
    """A few words to search for or to send."""
    return " ".join(_word(rng) for _ in range(rng.randrange(1, most + 1)))


def number(rng: Random) -> int:
    """A number of one to four digits, short ones as often as long ones."""
    return rng.randrange(10 ** rng.choice((1, 1, 2, 2, 2, 3, 4)))


def _word(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.65:
        return rng.choice(_WORDS)
    if kind < 0.85:
        return syllables(rng)
    return rng.choice((syllables(rng).capitalize(), rng.choice(_PLACES), str(number(rng))))
