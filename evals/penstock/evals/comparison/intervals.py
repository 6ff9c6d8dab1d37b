"""What a sample says of all prompts like it, with how sure it is. Pure; the only user of scipy.

That is imported where it computes: it takes two seconds of a core, and most only want the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

RESAMPLES: Final = 4999
_BATCH: Final = 500  # resamples at a time: what bounds the memory of large datasets


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure as it was measured, and between which it lies for all prompts of the kind."""

    low: float
    value: float
    high: float
    count: int  # what it was measured on


def plain(value: Any) -> Any:
    """A figure, or a dataclass of any depth that holds some, for JSON: to six places."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def share(hits: int, count: int, confidence: float) -> Interval | None:
    """A share of a whole, by Wilson's interval; None where nothing was counted."""
    if not count:
        return None
    from scipy import stats

    found = stats.binomtest(hits, count).proportion_ci(confidence, method="wilson")
    value = hits / count
    return Interval(min(found.low, value), value, max(found.high, value), count)


def mean_within(
    values: Sequence[float], least: float, most: float, confidence: float, seed: int
) -> Interval | None:
    """A mean of values that cannot leave `least` to `most`, by bootstrap.

    A sample knows nothing of the values that it does not have: where all are alike, the bootstrap's
    interval is a point, however few they are. So the lower bound counts one value more, the least
    that there can be, and the upper bound one more, the most. None where there is none.
    """
    if not values:
        return None
    low = _bootstrap([*values, least], confidence, seed)[0]
    high = _bootstrap([*values, most], confidence, seed)[1]
    value = math.fsum(values) / len(values)
    return Interval(min(low, value), value, max(high, value), len(values))


def mean_ratio(
    pairs: Sequence[tuple[float, float]], confidence: float, seed: int
) -> Interval | None:
    """How many times the second the first is: the geometric mean over pairs, by bootstrap. None
    where fewer than two pairs can be divided."""
    logs = [math.log(one / other) for one, other in pairs if one > 0 and other > 0]
    if len(logs) < 2:
        return None
    low, high = _bootstrap(logs, confidence, seed)
    value = math.fsum(logs) / len(logs)
    return Interval(
        math.exp(min(low, value)), math.exp(value), math.exp(max(high, value)), len(logs)
    )


def chance_of(wins: int, losses: int) -> float | None:
    """How likely so uneven a count is where neither is better (the sign test, two-sided)."""
    if not wins + losses:
        return None
    from scipy import stats

    return float(stats.binomtest(wins, wins + losses).pvalue)


def _bootstrap(values: Sequence[float], confidence: float, seed: int) -> tuple[float, float]:
    import numpy
    from scipy import stats

    found = stats.bootstrap(
        (numpy.asarray(values, dtype=float),),
        numpy.mean,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        confidence_level=confidence,
        method="percentile",
        rng=numpy.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)
