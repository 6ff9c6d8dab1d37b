"""Evidence that may be looked at after every pair: bets against what would have to be true.

A check's difference d lies in [-1, 1], positive where the candidate is worse. Three capitals bet on
each difference (Waudby-Smith and Ramdas, 2024), each on one claim being wrong:
`worse` bets against "not worse" (E[d] <= 0), `equal` against "worse by the margin" (E[d] >= M),
`better` against "not better" (E[d] >= 0). Where a claim is true its capital is a supermartingale
that starts at 1: that it ever passes L has a chance of at most 1/L, whenever and however often one
looks. So a passed limit stays passed, and the highest capitals are kept too.

The state is one array of few floats, its first axis by `FIELDS`; what other axes there are, a
simulation's shadows and gates, go through the same functions. Pure.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

FIELDS: Final = (
    *("count", "total", "spread"),
    *("worse", "equal", "better"),  # log capitals
    *("highest_worse", "highest_equal", "highest_better"),
)
FEWEST: Final = 50
"""Pairs before anything is said: the first few can pass a limit by luck that nobody would believe,
where margins are wide."""
_PRIOR_SPREAD: Final = 0.25  # as if one difference of a half had been seen: bets begin small
_CAP: Final = 0.5  # of a capital, that one difference can lose
_SIDES: Final = np.array([1.0, -1.0, -1.0])  # on which side of its claim's bound each one bets


class Verdict(IntEnum):
    """What the evidence comes to."""

    UNDECIDED = 0
    BETTER = 1
    EQUAL = 2
    WORSE = 3


def begun(*shape: int) -> Floats:
    """The state before any pair."""
    state = np.zeros((len(FIELDS), *shape))
    state[2] = _PRIOR_SPREAD
    return state


def step(state: Floats, difference: npt.ArrayLike, margin: npt.ArrayLike) -> Floats:
    """The state after one more difference. Where it is NaN there is none, and nothing changes."""
    d = np.asarray(difference, dtype=float)
    count, total, spread = state[:3]
    mean, claims = total / (count + 1), _claims(np.asarray(margin, dtype=float), state)
    sides = _against(_SIDES, state)
    gain = (mean - claims) * sides
    bets = bet(gain, spread / (count + 1), claims * sides)
    capitals = state[3:6] + np.log1p(bets * (d - claims) * sides)
    after = (total + d) / (count + 2)
    moments = np.stack([count + 1, total + d, spread + (d - mean) * (d - after)])
    stepped = np.concatenate([moments, capitals, np.maximum(state[6:9], capitals)])
    return np.where(np.isnan(d), state, stepped)


def bet(gain: Any, variance: Any, bound: Any) -> Any:
    """The share that is bet where differences lie `gain` beyond the claim's bound: about what makes
    capital grow fastest, and never so much that one difference takes more than half of it."""
    return np.minimum(np.clip(gain / (variance + gain * gain), 0, None), _CAP / (1 + bound))


def verdicts(state: Floats, margin: Floats | float, log_limit: Floats | float) -> Codes:
    """What each state comes to, as `Verdict`. Worse is only who is surely worse *and*, as far as
    one can see, by the margin: a little worse is tolerable, however sure."""
    seen = estimate(state)
    passed = state[6:9] >= log_limit
    worse = passed[0] & (seen >= margin)
    better = passed[2] & (seen <= -margin)
    found = np.select(
        [state[0] < FEWEST, worse, better, passed[1]],
        [Verdict.UNDECIDED, Verdict.WORSE, Verdict.BETTER, Verdict.EQUAL],
        Verdict.UNDECIDED,
    )
    return found.astype(np.int8)


def whole(gates: Codes) -> Codes:
    """What gates come to together, along the last axis: worse if any is; else all have to be
    decided, and it is better if any is."""
    worse, undecided = (gates == Verdict.WORSE).any(-1), (gates == Verdict.UNDECIDED).any(-1)
    better = (gates == Verdict.BETTER).any(-1)
    decided = np.where(
        undecided, Verdict.UNDECIDED, np.where(better, Verdict.BETTER, Verdict.EQUAL)
    )
    return np.where(worse, Verdict.WORSE, decided).astype(np.int8)


def estimate(state: Floats) -> Any:
    """The mean difference so far."""
    return state[1] / np.maximum(state[0], 1)


def _claims(margin: Floats, state: Floats) -> Floats:
    zero = np.zeros(state.shape[1:])
    return np.stack([zero, zero + margin, zero])


def _against(values: Floats, state: Floats) -> Floats:
    return values.reshape(-1, *([1] * (state.ndim - 1)))
