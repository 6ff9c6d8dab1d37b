"""The two bets that a canary is judged by, each in closed form of what was counted. Pure.

Both are e-processes: where the claim that is bet against is true, the bet has a chance of at most
1/L to ever gain a factor of L, however often one looks. How they are used, and what they cost, is
told in docs/concepts/canary_statistics.md.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

_ODDS_RATIOS: Final = tuple(2.0 ** (step / 2) for step in range(1, 25))  # 1.4 to 4096
_TINY: Final = 1e-9


class Shares(NamedTuple):
    """Of how many sessions something is true, in each arm."""

    bad: int  # of the candidate
    sessions: int
    stable_bad: int
    stable_sessions: int

    @property
    def rate(self) -> float:
        """The candidate's share."""
        return self.bad / self.sessions if self.sessions else 0.0

    @property
    def stable_rate(self) -> float:
        """The stable arm's."""
        return self.stable_bad / self.stable_sessions if self.stable_sessions else 0.0

    @property
    def gap(self) -> float:
        """How far the candidate's is above it."""
        return self.rate - self.stable_rate


def log_evidence(candidate: int, stable: int, odds: float) -> float:
    """Natural logarithm of the bet against "no worse": what happened to so many sessions of each
    arm falls to the candidate with these odds at most. A mixture over how much worse it is; what
    both arms suffer alike cancels."""
    together = candidate + stable
    bets = [
        candidate * math.log(ratio) - together * math.log1p(odds * (ratio - 1) / (1 + odds))
        for ratio in _ODDS_RATIOS
    ]
    highest = max(bets)
    return highest + math.log(math.fsum(math.exp(bet - highest) for bet in bets) / len(bets))


class Power(NamedTuple):
    """How far the other bet has come."""

    log: float  # natural logarithm
    growth: float  # with each session of an equal candidate


def log_power(shares: Shares, far: float) -> Power:
    """The bet against "worse by `far`": the candidate's share is so much above the stable arm's,
    or more.

    Its alternative is that both are alike. Against the whole claim the likelihood ratio to its
    nearest point (its reverse information projection: Grünwald, de Heide and Koolen, 2024) is an
    e-variable for each session, whose arm is chance. How often it happens to the stable arm is
    estimated from that arm itself, which is the larger one wherever this matters.
    """
    bad, sessions, stable_bad, stable_sessions = shares
    if far + 2 * _TINY >= 1:
        return Power(math.inf, 0.0)  # nothing can be so much worse
    if not sessions or not stable_sessions:
        return Power(0.0, 0.0)
    alike = (stable_bad + 0.5) / (stable_sessions + 1)
    theta = sessions / (sessions + stable_sessions)
    near = _nearest(alike, far, theta)
    log = _log_ratio(bad, sessions, alike, near + far)
    log += _log_ratio(stable_bad, stable_sessions, alike, near)
    return Power(log, _distance(near, alike, far, theta) / theta)


def _log_ratio(bad: int, sessions: int, one: float, other: float) -> float:
    return bad * math.log(one / other) + (sessions - bad) * math.log((1 - one) / (1 - other))


def _distance(near: float, alike: float, far: float, theta: float) -> float:
    """Relative entropy of a session's outcome: alike in both arms, from `near` and `near + far`."""
    return theta * _log_ratio_mean(alike, near + far) + (1 - theta) * _log_ratio_mean(alike, near)


def _log_ratio_mean(one: float, other: float) -> float:
    return one * math.log(one / other) + (1 - one) * math.log((1 - one) / (1 - other))


def _nearest(alike: float, far: float, theta: float) -> float:
    """The stable arm's share in the claim's nearest point: the least of a convex function."""
    low, high = _TINY, 1 - far - _TINY
    for _ in range(40):
        third = (high - low) / 3
        one, other = low + third, high - third
        if _distance(one, alike, far, theta) < _distance(other, alike, far, theta):
            high = other
        else:
            low = one
    return (low + high) / 2
