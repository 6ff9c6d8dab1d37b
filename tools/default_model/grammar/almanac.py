"""What penstock-mini knows by heart from the almanac: capitals, days and months."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import NEXT, Turn, asked
from tools.default_model.grammar.words import WEEK, listed

_CAPITALS: Final = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Poland": "Warsaw",
    "Greece": "Athens",
    "England": "London",
    "Ireland": "Dublin",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Japan": "Tokyo",
    "Egypt": "Cairo",
    "India": "New Delhi",
    "Canada": "Ottawa",
}
_MONTHS: Final = listed(
    "January February March April May June July August September October November December"
)


def capitals(rng: Random) -> list[Turn]:
    """The capital of a country or two."""
    turns: list[Turn] = []
    for country in rng.sample(list(_CAPITALS), rng.choice((1, 1, 2))):
        answer = f"The capital of {country} is {_CAPITALS[country]}."
        forms = [
            f"what is the capital of {country}",
            f"capital of {country}",
            f"which city is the capital of {country}",
            f"what is {country}'s capital",
            f"tell me about {country}",
        ]
        if turns:
            forms = [f"and of {country}", f"and {country}", f"what about {country}"]
        turns.append(Turn(asked(rng, rng.choice(forms)), answer, "capitals"))
    return turns


def calendar(rng: Random) -> list[Turn]:
    """The day or the month that comes after another, and the one after that."""
    names, kind = (WEEK, "days") if rng.random() < 0.5 else (_MONTHS, "months")
    if rng.random() < 0.15:
        question = rng.choice((f"name the {kind}", f"list the {kind}", f"what are the {kind}"))
        question += " of the week" if kind == "days" else " of the year"
        answer = f"The {kind} are {', '.join(names[:-1])} and {names[-1]}."
        return [Turn(asked(rng, question), answer, "calendar")]
    at = rng.randrange(len(names))
    question = rng.choice(
        (
            "what comes after {}",
            "which {k} comes after {}",
            "what {k} follows {}",
            "what is after {}",
        )
    )
    question = question.format(names[at], k=kind.removesuffix("s"))
    turns: list[Turn] = []
    for step in range(rng.choice((1, 1, 2, 3))):
        before, after = names[(at + step) % len(names)], names[(at + step + 1) % len(names)]
        turns.append(Turn(asked(rng, question), f"After {before} comes {after}.", "calendar"))
        question = rng.choice(NEXT)
    return turns
