"""Whole conversations: threads of several topics in a row, with a system prompt or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tools.default_model.grammar import (
    almanac,
    elsewhere,
    numbers,
    penstock,
    smalltalk,
    stories,
    world,
)
from tools.default_model.grammar.styles import STYLES, WISHES, Style
from tools.default_model.grammar.turns import Turn

Thread = Callable[[Random], list[Turn]]

THREADS: Final[dict[str, tuple[Thread, float]]] = {  # name: (what makes it, how often)
    "penstock": (penstock.subjects, 24),
    "penstock in full": (penstock.long_explanation, 0.5),
    "smalltalk": (smalltalk.smalltalk, 9),
    "echo": (smalltalk.echo, 9),
    "elsewhere": (elsewhere.elsewhere, 9),
    "rivers": (world.rivers, 7),
    "planets": (world.planets, 7),
    "colours": (world.colours, 6),
    "animals": (world.animals, 8),
    "capitals": (almanac.capitals, 6),
    "calendar": (almanac.calendar, 5),
    "sums": (numbers.sums, 24),
    "counting": (numbers.counting, 10),
    "jokes": (stories.jokes, 3),
    "poems": (stories.poems, 2),
    "stories": (stories.stories, 4),
    "a long story": (stories.long_story, 0.5),
}
_NAMES: Final = tuple(THREADS)
_WEIGHTS: Final = tuple(weight for _, weight in THREADS.values())
SYSTEM: Final = (
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are penstock-mini.",
    "Answer briefly.",
    "Be kind and helpful. Answer in English.",
    "You are a friendly teacher. Answer the user's questions.",
    "You are an assistant for the people who run Penstock. Be exact, be brief, and never guess.",
    "Today is Monday. The user is in Berlin.",
    "Think step by step.",
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in their order, and the system prompt before them, empty if there is none."""

    system: str
    turns: tuple[Turn, ...]


def conversation(rng: Random) -> Conversation:
    """A conversation of one to three threads, sometimes with the user's name in it."""
    threads = [_thread(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    if rng.random() < 0.22:
        threads = _with_name(rng, threads)
    system = rng.choice(SYSTEM) if rng.random() < 0.25 else ""
    return Conversation(system, tuple(turn for turns in threads for turn in turns))


def styled(rng: Random) -> tuple[Conversation, Style]:
    """A conversation whose system prompt asks for a style, and that style."""
    name = rng.choice(tuple(STYLES))
    return Conversation(rng.choice(WISHES[name]), conversation(rng).turns), STYLES[name]


def passage(rng: Random) -> str:
    """A text without a chat around it, for plain completions."""
    return rng.choice(_thread(rng)).answer


def _thread(rng: Random) -> list[Turn]:
    make, _ = THREADS[rng.choices(_NAMES, _WEIGHTS)[0]]
    return make(rng)


def _with_name(rng: Random, threads: list[list[Turn]]) -> list[list[Turn]]:
    """The threads with the user's name told before one of them and asked for after one."""
    if rng.random() < 0.2:
        return [*threads, [smalltalk.recall(rng, None)]]
    name = smalltalk.new_name(rng)
    told = rng.randrange(len(threads) + 1)
    back = rng.randrange(told, len(threads) + 1)
    asked, said = [smalltalk.recall(rng, name)], [smalltalk.introduction(rng, name)]
    return [*threads[:told], said, *threads[told:back], asked, *threads[back:]]
