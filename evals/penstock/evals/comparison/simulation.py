"""Shadows that never were: how often verdicts err, and how many pairs they take.

Each row is so many shadows of so many pairs, looked at after every pair, through the functions that
count real pairs. Randomness comes from the row's own seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.evals.comparison.betting import Floats, Verdict, begun, step, verdicts, whole

Flags = npt.NDArray[np.bool_]

MARGIN: Final = 0.02
ALPHA: Final = 0.05
MOST_TURNS: Final = 15
"""Sessions of a simulation have 1 to so many turns: eight on average."""


class Course(StrEnum):
    """How a shadow's pairs follow each other."""

    STEADY = "steady"
    DRIFT = "drift"  # a sixteenth of the discordance at first, twice of it at the end, in waves
    SESSIONS = "sessions"  # turns that repeat their session's first outcome


@dataclass(frozen=True, slots=True)
class Row:
    """What one row simulates."""

    discordance: float  # share of pairs that differ, half each way, where the candidate is equal
    worse_by: float = 0.0  # of the first gate; the others are equal
    gates: int = 1
    course: Course = Course.STEADY

    @property
    def log_limit(self) -> float:
        """What a capital must pass: the error rate is split among the gates."""
        return float(np.log(self.gates / ALPHA))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row's shadows."""

    row: Row
    shadows: int
    pairs: int
    worse: float  # share of the shadows that were ever said to be worse
    equal: float  # ... whose first verdict was equal, or better
    first: tuple[float, float]  # pairs until the first gate says what is true: p50, p95

    def as_row(self) -> str:
        """A line of the table."""
        told = [
            f"{each:,.0f}" if each <= self.pairs else f"> {self.pairs:,}" for each in self.first
        ]
        row = self.row
        cells = (
            f"{row.discordance:.1%}",
            str(row.course),
            str(row.gates),
            f"{row.worse_by:.2f}" if row.worse_by else "equal",
            *(f"{self.worse:.1%}", f"{self.equal:.1%}", *told),
        )
        return f"| {' | '.join(cells)} |"


HEAD: Final = (
    "| pairs that differ | course | gates | candidate | ever said worse | first said equal "
    "| pairs p50 | p95 |\n|---:|---|---:|---|---:|---:|---:|---:|"
)


def rows(discordances: Sequence[float] = (0.005, 0.02, 0.1, 0.3)) -> list[Row]:
    """What the documentation shows."""
    found = []
    for gates in (1, 10):
        for course in Course:
            found += [Row(each, 0.0, gates, course) for each in discordances]
        found += [Row(each, 2 * MARGIN, gates) for each in discordances]
        found += [Row(each, 2 * MARGIN, gates, Course.DRIFT) for each in discordances]
    return found


def simulate(row: Row, shadows: int, pairs: int, seed: int) -> Outcome:
    """Runs a row's shadows side by side, pair by pair, to the end, whatever is said before."""
    chance = np.random.default_rng(seed)
    draw, counted = _draws(row, chance, shadows, pairs), _counted(row, chance, shadows, pairs)
    state = begun(shadows, row.gates)
    truth = [Verdict.WORSE] if row.worse_by else [Verdict.EQUAL, Verdict.BETTER]
    said = np.zeros(shadows, dtype=np.int8)
    ever_worse = np.zeros(shadows, dtype=bool)
    first = np.full(shadows, pairs + 1.0)
    for number in range(pairs):
        difference = draw(number)
        difference[~counted(number)] = np.nan
        state = step(state, difference, MARGIN)
        now = verdicts(state, MARGIN, row.log_limit)
        first = np.where(np.isin(now[:, 0], truth) & (first > pairs), number + 1, first)
        together = whole(now)
        said = np.where(said > 0, said, together)
        ever_worse |= together == Verdict.WORSE
    return Outcome(
        row,
        shadows,
        pairs,
        float(ever_worse.mean()),
        float(np.isin(said, [Verdict.EQUAL, Verdict.BETTER]).mean()),
        (float(np.median(first)), float(np.quantile(first, 0.95))),
    )


def _draws(
    row: Row, chance: np.random.Generator, shadows: int, pairs: int
) -> Callable[[int], Floats]:
    shift = np.zeros(row.gates)
    shift[0] = row.worse_by

    def draw(number: int) -> Floats:
        level = row.discordance
        if row.course is Course.DRIFT:
            part = number / pairs
            level *= (1 + part) * (1 - 15 / 16 * np.cos(4.5 * np.pi * part) ** 2)
        luck = chance.random((shadows, row.gates))
        worse = luck < level / 2 + shift
        return worse.astype(np.float64) - ((luck >= level / 2 + shift) & (luck < level + shift))

    return draw


def _counted(
    row: Row, chance: np.random.Generator, shadows: int, pairs: int
) -> Callable[[int], Flags]:
    """Which shadows' pair of that number is the first of its session."""
    left = np.zeros(shadows, dtype=np.int64)

    def counted(number: int) -> Flags:
        if row.course is not Course.SESSIONS:
            return np.ones(shadows, dtype=bool)
        nonlocal left
        first: Flags = left == 0
        left = np.where(first, chance.integers(1, MOST_TURNS + 1, shadows), left) - 1
        return first

    return counted
