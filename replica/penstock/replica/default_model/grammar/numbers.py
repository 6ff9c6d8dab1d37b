"""Simple sums and counting."""

from __future__ import annotations

from random import Random
from typing import Final

from penstock.replica.default_model.grammar.turns import Turn, asked

_WORDS: Final = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)
_PLUS: Final[tuple[str, ...]] = (
    "what is {} plus {}",
    "{} plus {}",
    "{} + {}",
    "what is {} + {}",
    "what is {}+{}",
    "{}+{}",
    "add {} and {}",
    "how much is {} plus {}",
    "what do {} and {} make",
)
_MINUS: Final[tuple[str, ...]] = (
    "what is {} minus {}",
    "{} minus {}",
    "{} - {}",
    "what is {} - {}",
    "how much is {} minus {}",
)
_TIMES: Final[tuple[str, ...]] = (
    "what is {} times {}",
    "{} times {}",
    "{} * {}",
    "what is {} x {}",
    "how much is {} times {}",
    "multiply {} by {}",
)


def sums(rng: Random) -> list[Turn]:
    """A few sums of two small numbers, and sometimes one more added to the last result."""
    turns: list[Turn] = []
    for _ in range(rng.randrange(1, 5)):
        turn, result = _sum(rng)
        turns.append(turn)
    if rng.random() < 0.3:
        more = rng.choice(("and one more", "plus one", "add one", "and plus 1", "one more"))
        turns.append(Turn(asked(rng, more), f"{result} plus 1 is {result + 1}.", "sums"))
    return turns


def _sum(rng: Random) -> tuple[Turn, int]:
    """A sum, and its result."""
    kind = rng.random()
    a, b = rng.randrange(11), rng.randrange(11)
    forms, word, result = _PLUS, "plus", a + b
    if kind >= 0.7:
        forms, word, result = _TIMES, "times", a * b
    elif kind >= 0.45:
        a, b = max(a, b), min(a, b)
        forms, word, result = _MINUS, "minus", a - b
    question = rng.choice(forms).format(*_spoken(rng, a, b))
    return Turn(asked(rng, question), f"{a} {word} {b} is {result}.", "sums"), result


def _spoken(rng: Random, *numbers: int) -> list[str]:
    """The numbers as figures, or one time in five as words."""
    return [_WORDS[n] for n in numbers] if rng.random() < 0.2 else [str(n) for n in numbers]


def counting(rng: Random) -> list[Turn]:
    """Counting upwards between two numbers up to a hundred, or down from one up to twenty."""
    kind = rng.random()
    if kind < 0.25:
        start = rng.randrange(2, 21)
        question = rng.choice(
            ("count down from {}", "count backwards from {}", "start a countdown from {}")
        )
        return [Turn(asked(rng, question.format(start)), counted(start, 0), "counting")]
    if kind < 0.33:
        question = rng.choice(
            ("count to 100", "count from 1 to 100", "count to one hundred", "count up to 100")
        )
        return [Turn(asked(rng, question), counted(1, 100), "counting")]
    if kind < 0.6:
        end = rng.randrange(2, 41)
        question = rng.choice(
            ("count to {}", "count up to {}", "count from 1 to {}", "count from one to {}")
        )
        return [Turn(asked(rng, question.format(end)), counted(1, end), "counting")]
    start = rng.randrange(1, 90)
    end = min(100, start + rng.randrange(2, 16))
    question = rng.choice(
        (
            "count from {} to {}",
            "count {} to {}",
            "count up from {} to {}",
            "count from {} up to {}",
        )
    )
    return [Turn(asked(rng, question.format(start, end)), counted(start, end), "counting")]


def counted(start: int, end: int) -> str:
    """The answer to a wish to count from `start` to `end`, upwards or downwards."""
    step = 1 if end >= start else -1
    numbers = ", ".join(str(n) for n in range(start, end + step, step))
    return f"Counting from {start} to {end}: {numbers}."
