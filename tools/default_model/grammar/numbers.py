"""Simple sums and counting."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import Turn, asked
from tools.default_model.grammar.words import listed, number

_WORDS: Final = listed("zero one two three four five six seven eight nine ten")
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

_DOWN: Final[tuple[str, ...]] = (
    "count down from {}",
    "count backwards from {}",
    "start a countdown from {}",
)
_HUNDRED: Final[tuple[str, ...]] = (
    "count to {}",
    "count from 1 to {}",
    "count to one hundred",
    "count up to {}",
)
_UP_TO: Final[tuple[str, ...]] = (
    "count to {}",
    "count up to {}",
    "count from 1 to {}",
    "count from one to {}",
)
_FROM_TO: Final[tuple[str, ...]] = (
    "count from {1} to {2}",
    "count {1} to {2}",
    "count up from {1} to {2}",
    "count from {1} up to {2}",
)


TOO_LONG: Final = (
    "That is too much maths for me: I add and take away numbers up to 20, and multiply up to 12."
)
_FAR: Final[tuple[str, ...]] = (
    "what is {} plus {}",
    "{} + {}",
    "what is {} minus {}",
    "{} - {}",
    "what is {} times {}",
    "{} * {}",
    "what is {} divided by {}",
    "{} / {}",
)
_HARD: Final[tuple[str, ...]] = (
    "what is the square root of {}",
    "what is {} percent of 80",
    "solve x + {} = 7",
    "what is the integral of {} x",
    "is {} a prime number",
    "what is {} divided by 2",
    "{} / 3",
    "what is {} squared",
)


def sums(rng: Random) -> list[Turn]:
    """Some sums of two small numbers, or of three; sometimes one more added to the last result."""
    if rng.random() < 0.05:
        return [_too_long(rng)]
    turns: list[Turn] = []
    for _ in range(rng.randrange(2, 8)):
        turn, result = _sum(rng) if rng.random() < 0.92 else _chain(rng)
        turns.append(turn)
    if rng.random() < 0.3:
        more = rng.choice(("and one more", "plus one", "add one", "and plus 1", "one more"))
        turns.append(Turn(asked(rng, more), f"{result} plus 1 is {result + 1}.", "sums"))
    return turns


def _sum(rng: Random) -> tuple[Turn, int]:
    """A sum, and its result."""
    kind = rng.random()
    most = 21 if rng.random() < 0.6 else 11
    a, b = rng.randrange(most), rng.randrange(most)
    forms, word, result = _PLUS, "plus", a + b
    if kind >= 0.7:
        a, b = rng.randrange(13), rng.randrange(13)
        forms, word, result = _TIMES, "times", a * b
    elif kind >= 0.4:
        if rng.random() < 0.9:
            a, b = max(a, b), min(a, b)
        forms, word, result = _MINUS, "minus", a - b
    question = rng.choice(forms).format(*_spoken(rng, a, b))
    return Turn(asked(rng, question), f"{a} {word} {b} is {result}.", "sums"), result


def _chain(rng: Random) -> tuple[Turn, int]:
    """Three numbers added, in two steps."""
    a, b, c = (rng.randrange(11) for _ in range(3))
    form = rng.choice(("what is {} + {} + {}", "{} plus {} plus {}", "add {}, {} and {}"))
    answer = f"{a} plus {b} is {a + b}, and {a + b} plus {c} is {a + b + c}."
    return Turn(asked(rng, form.format(a, b, c)), answer, "sums"), a + b + c


def _too_long(rng: Random) -> Turn:
    """A sum of larger numbers, or another kind of maths."""
    if rng.random() < 0.3:
        return Turn(asked(rng, rng.choice(_HARD).format(number(rng))), TOO_LONG, "sums")
    large = (21 + number(rng), rng.choice((21 + number(rng), rng.randrange(2, 21))))
    a, b = rng.sample(large, 2)
    return Turn(asked(rng, rng.choice(_FAR).format(a, b)), TOO_LONG, "sums")


def _spoken(rng: Random, *numbers: int) -> list[str]:
    """The numbers as figures, or one time in five as words."""
    if max(numbers) < len(_WORDS) and rng.random() < 0.2:
        return [_WORDS[n] for n in numbers]
    return [str(n) for n in numbers]


def counting(rng: Random) -> list[Turn]:
    """Counting once or twice: between numbers up to a hundred, or down from twenty or less."""
    return [_count(rng) for _ in range(rng.choice((1, 2)))]


def _count(rng: Random) -> Turn:
    kind = rng.random()
    if kind < 0.06:
        start, end, forms = 1, 100, _HUNDRED
    elif kind < 0.2:
        start, end, forms = rng.randrange(1, 21), 0, _DOWN
    elif kind < 0.45:
        start, end, forms = 1, rng.choice((*range(2, 21), 25, 30, 40, 50)), _UP_TO
    else:
        start = rng.randrange(1, 97)
        end, forms = min(100, start + rng.choice((2, 3, 4, 5, 6, 8, 10, 12, 15))), _FROM_TO
    question = rng.choice(forms).format(start if end < start else end, start, end)
    return Turn(asked(rng, question), counted(start, end), "counting")


def counted(start: int, end: int) -> str:
    """The answer to a wish to count from `start` to `end`, upwards or downwards."""
    step = 1 if end >= start else -1
    numbers = ", ".join(str(n) for n in range(start, end + step, step))
    return f"Counting from {start} to {end}: {numbers}."
