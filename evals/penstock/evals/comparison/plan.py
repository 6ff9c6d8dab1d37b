"""How many pairs a verdict takes: beforehand, from margins alone; on the way, from what was seen.

Estimates, for people who wait; no verdict goes by them. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.evals.comparison.betting import FEWEST, Floats, bet, estimate
from penstock.evals.comparison.rules import Check, Rules, Unit

LEARNING: Final = 1.5
"""What a capital has cost, in log, by the time that its bets are right; from the simulation."""
DISCORDANCES: Final = (0.005, 0.02, 0.1, 0.3)
_TIME_SIGMAS: Final = (0.2, 0.5)
"""How times of like requests spread, in log: an idle machine, and a busy one."""
_NEVER: Final = 10_000_000
SELF_SHARE: Final = 0.25
SELF_ENOUGH: Final = 500
SELF_SHARE_AFTER: Final = 0.05
"""The self arm takes a quarter of the pairs until it has so many, then a twentieth."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a gate can show, where so much differs by chance: median pairs, and days of traffic."""

    check: Check
    noise: str
    equal: int
    worse: int  # by twice the margin
    equal_days: float
    worse_days: float


def plan(rules: Rules, pairs_a_day: float) -> list[Promise]:
    """Each gate at each noise; where no traffic is known, an infinite one takes no days. For a gate
    of what few requests ask for (JSON, tools), the pairs are those that ask."""
    return [
        _promise(each, noise, equal, worse, pairs_a_day, rules.log_limit(each))
        for each in rules.gates
        for noise, equal, worse in _noises(each)
    ]


def pairs_needed(log_limit: float, gap: float, variance: float, bound: float = 0.0) -> int:
    """Median pairs until a capital passes, whose bets are on differences that lie `gap` beyond the
    bound of their claim."""
    if gap <= 0:
        return _NEVER
    return min(
        max(FEWEST, math.ceil((log_limit + LEARNING) / _growth(gap, variance, bound))), _NEVER
    )


def missing(evidence: Floats, check: Check, log_limit: float) -> int | None:
    """Pairs of this check that are still needed, as it looks: None with too few to tell."""
    count, seen = float(evidence[0]), float(estimate(evidence))
    if count < FEWEST:
        return None
    variance = float(evidence[2]) / (count + 1)
    ways = [(float(evidence[4]), check.margin - seen, -check.margin)]
    if seen >= check.margin:
        ways = [(float(evidence[3]), seen, 0.0)]
    elif seen <= -check.margin:
        ways.append((float(evidence[5]), -seen, 0.0))
    return min(
        _NEVER
        if gap <= 0
        else min(math.ceil(max(log_limit - capital, 0) / _growth(gap, variance, bound)), _NEVER)
        for capital, gap, bound in ways
    )


def with_self_arm(pairs: int) -> int:
    """Pairs until so many of them are of the self arm."""
    early = min(pairs, SELF_ENOUGH)
    return math.ceil(early / SELF_SHARE + (pairs - early) / SELF_SHARE_AFTER)


def as_rows(promises: Iterable[Promise]) -> list[dict[str, Any]]:
    """For JSON; days that nobody knows, of an infinite traffic, are null."""
    return [
        {
            "name": each.check.name,
            "margin": each.check.margin,
            "noise": each.noise,
            "equal": each.equal,
            "worse": each.worse,
            "equal_days": each.equal_days or None,
            "worse_days": each.worse_days or None,
        }
        for each in promises
    ]


def as_markdown(promises: Iterable[Promise]) -> str:
    """The table."""
    lines = [
        "| gate | margin | noise | equal: pairs | days | worse by twice the margin: pairs | days |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for each in promises:
        cells = (
            *(each.check.name, f"{each.check.margin:g}", each.noise),
            *(f"{each.equal:,}", _days(each.equal_days)),
            *(f"{each.worse:,}", _days(each.worse_days)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _days(days: float) -> str:
    return f"{days:.1f}" if days else "-"  # without traffic there are none


def _promise(
    check: Check, noise: str, equal: float, worse: float, pairs_a_day: float, log_limit: float
) -> Promise:
    margin = check.margin
    found = [
        pairs_needed(log_limit, margin, equal, -margin),
        pairs_needed(log_limit, 2 * margin, worse),
    ]
    if check.needs_self:
        found = [with_self_arm(each) for each in found]
    return Promise(check, noise, *found, *(each / pairs_a_day for each in found))


def _noises(check: Check) -> Sequence[tuple[str, float, float]]:
    """What differs by chance, and the variance of differences where the candidate is equal, and
    where it is worse by twice the margin."""
    if check.unit is Unit.RATIO:
        spreads = [(each, (each / math.log(2) / 2) ** 2) for each in _TIME_SIGMAS]
        return [(f"sigma {sigma:g}", variance, variance) for sigma, variance in spreads]
    shift = 2 * check.margin
    return [(f"{each:.1%} differ", each, each + shift - shift * shift) for each in DISCORDANCES]


def _growth(gap: float, variance: float, bound: float) -> float:
    """By how much a capital's logarithm grows with each pair."""
    share = float(bet(np.float64(gap), variance, bound))
    return share * gap - share * share * (variance + gap * gap) / 2
