"""What the counts of a canary's two arms say: guard by guard, at any moment. Pure.

Each guard is about a share of sessions: that broke, whose answer ended badly, that were slower
than half, or than nine tenths, of the stable arm's. It rolls back by the bet against "no worse",
and lets go on by the bet against "worse by twice the margin" (`bets.py`): where that passes
1 / (1 - power), what is so much worse would have been seen with that power, whenever one looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from penstock.control.state.canary.bets import Power, Shares, log_evidence, log_power
from penstock.control.state.canary.canary import Edge
from penstock.control.state.canary.counts import BINS, ArmCounts, Bins, Counts
from penstock.control.state.canary.spec import WHOLE, CanarySpec

ERROR_RATE: Final = 0.01  # of rolling back an equal candidate by errors; by all others together
POWER: Final = 0.9
TIMES: Final = ("ttft", "between_tokens", "total")
QUANTILES: Final = (("p50", 0.5), ("p90", 0.1))  # with the share that lies beyond
FEWEST_TIMES: Final = 100  # sessions of the stable arm that an edge is fixed by
RARE: Final = 0.05  # of the stable arm's answered sessions: what fewer have is not judged
_OTHERS: Final = 1 + len(TIMES) * len(QUANTILES)
_ENOUGH: Final = -math.log(1 - POWER)
_SPOTLESS: Final = 0.1  # of the margin: how rarely a good candidate is saved by the stable arm


class Verdict(StrEnum):
    """What the evidence of one guard comes to."""

    BETTER = "better"
    EQUAL = "equal"
    WORSE = "worse"  # rolls back
    UNDECIDED = "undecided"  # holds


@dataclass(frozen=True, slots=True)
class Finding:
    """One guard, with the figures that its verdict was made from."""

    guard: str
    verdict: Verdict
    stable: float  # share of the arm's sessions
    candidate: float
    stable_sessions: int  # that the share is of
    candidate_sessions: int
    evidence: float  # against "not worse": natural logarithm; it rolls back from `limit` on
    limit: float
    missing: str = ""  # what an undecided one lacks, as people read it


class _Guard(NamedTuple):
    name: str
    shares: Shares
    margin: float
    ratio: float  # how many times as many are tolerated whatever the margin; 0: the margin counts
    limit: float


def edges_of(known: tuple[Edge, ...], counts: Counts) -> tuple[Edge, ...]:
    """The edges of a step, with those that can be fixed by now: where half and nine tenths of the
    stable arm's sessions were done. What is fixed stays."""
    fixed = {edge.guard for edge in known}
    found = [
        Edge(f"{time}_{name}", _edge(bins, beyond))
        for time in TIMES
        for name, beyond in QUANTILES
        if f"{time}_{name}" not in fixed
        and _size(bins := getattr(counts.stable, time)) >= FEWEST_TIMES
    ]
    return (*known, *found)


def findings(
    spec: CanarySpec, step: int, counts: Counts, edges: tuple[Edge, ...]
) -> tuple[Finding, ...]:
    """What each guard says of a step (from 1) that counted so much. One that says nothing of these
    requests is left out: where they have no such time, or hardly any."""
    permille = spec.steps[step - 1].permille
    if permille >= WHOLE:
        return (_finding_alone(spec, counts.candidate),)
    guards = _guards(spec, counts, {edge.guard: edge.bin for edge in edges})
    return tuple(_finding(guard, permille) for guard in guards)


def _guards(spec: CanarySpec, counts: Counts, edges: dict[str, int]) -> Iterator[_Guard]:
    stable, candidate = counts.stable, counts.candidate
    errors, limit = spec.guards.errors, _limit(spec, 1)
    yield _Guard(
        "errors",
        Shares(candidate.bad_sessions, candidate.sessions, stable.bad_sessions, stable.sessions),
        errors.margin,
        errors.ratio,
        limit,
    )
    limit = _limit(spec, _OTHERS)
    ends = Shares(
        candidate.bad_finishes,
        candidate.answered_sessions,
        stable.bad_finishes,
        stable.answered_sessions,
    )
    yield _Guard("finish", ends, spec.guards.finish.margin, 0, limit)
    for time in TIMES:
        margin = getattr(spec.guards, time).margin
        for name, _ in QUANTILES if _is_judged(time, stable, candidate) else ():
            shares = _slower(candidate, stable, time, edges.get(f"{time}_{name}"))
            yield _Guard(f"{time}_{name}", shares, margin, 0, limit)


def _limit(spec: CanarySpec, guards: int) -> float:
    return math.log(guards * len(spec.steps) / ERROR_RATE)


def _is_judged(time: str, stable: ArmCounts, candidate: ArmCounts) -> bool:
    """Whether sessions have such a time, in either arm, as a rule."""
    return any(
        _size(getattr(arm, time)) > RARE * arm.answered_sessions for arm in (stable, candidate)
    )


def _slower(candidate: ArmCounts, stable: ArmCounts, time: str, edge: int | None) -> Shares:
    """Sessions beyond the edge; none of either arm are counted before it is fixed."""
    if edge is None:
        return Shares(0, 0, 0, _size(getattr(stable, time)))
    row, other = getattr(candidate, time), getattr(stable, time)
    return Shares(_beyond(row, edge), _size(row), _beyond(other, edge), _size(other))


def _finding(guard: _Guard, permille: int) -> Finding:
    name, shares, margin, ratio, limit = guard
    meant = permille / (WHOLE - permille)
    came = shares.sessions / max(shares.stable_sessions, 1)
    evidence = log_evidence(shares.bad, shares.stable_bad, max(meant, came) * (ratio or 1))
    power = log_power(shares, 2 * margin)
    verdict = Verdict.UNDECIDED
    if evidence >= limit and (ratio or shares.gap > margin):
        verdict = Verdict.WORSE
    elif shares.gap <= -margin and _is_better(shares, min(meant, came), limit):
        verdict = Verdict.BETTER
    elif power.log >= _ENOUGH and shares.gap <= margin:
        verdict = Verdict.EQUAL
    missing = _missing(shares, margin, power) if verdict is Verdict.UNDECIDED else ""
    return _told(name, verdict, shares, evidence, limit, missing)


def _finding_alone(spec: CanarySpec, arm: ArmCounts) -> Finding:
    """Where everybody has the candidate there is no stable arm beside it. But what breaks before
    its first event is asked of the stable arm in the same request: what that one answers, the
    candidate alone is to blame for, and it rolls back where that is no rarer than the margin. What
    nobody could save may be an outage of both, or not: it holds."""
    margin, limit = min(spec.guards.errors.margin, 0.999), _limit(spec, 1)
    shares = Shares(arm.saved_sessions, arm.sessions, 0, 0)
    evidence = log_evidence(
        arm.saved_sessions, arm.sessions - arm.saved_sessions, margin / (1 - margin)
    )
    bad = shares._replace(bad=arm.bad_sessions)
    seldom, often = _SPOTLESS * margin, min(2 * margin, 0.999)
    growth = math.log((1 - seldom) / (1 - often))
    good = arm.sessions - arm.bad_sessions
    power = Power(arm.bad_sessions * math.log(seldom / often) + good * growth, growth)
    verdict = Verdict.UNDECIDED
    if evidence >= limit and shares.rate > margin:
        verdict = Verdict.WORSE
    elif power.log >= _ENOUGH and bad.rate <= margin:
        verdict = Verdict.EQUAL
    missing = ""
    if verdict is Verdict.UNDECIDED and bad.rate > margin:
        missing = f"{bad.rate:.1%} of its sessions broke, the margin is {margin:.1%}"
    elif verdict is Verdict.UNDECIDED:
        missing = _missing(shares, margin, power)
    return _told("errors", verdict, shares, evidence, limit, missing)


def _told(
    name: str, verdict: Verdict, shares: Shares, evidence: float, limit: float, missing: str
) -> Finding:
    return Finding(
        name,
        verdict,
        shares.stable_rate,
        shares.rate,
        shares.stable_sessions,
        shares.sessions,
        evidence,
        limit,
        missing,
    )


def _is_better(shares: Shares, odds: float, limit: float) -> bool:
    """Whether the stable arm is surely the worse one. Either arm is given the benefit of what came
    and what its share is, whichever is the more."""
    return odds > 0 and log_evidence(shares.stable_bad, shares.bad, 1 / odds) >= limit


def _missing(shares: Shares, margin: float, power: Power) -> str:
    if not shares.sessions and shares.stable_sessions < FEWEST_TIMES:
        return f"{FEWEST_TIMES - shares.stable_sessions} more sessions of the stable arm"
    if shares.gap > margin:
        return f"its share is {shares.gap:.1%} above the stable arm's, the margin is {margin:.1%}"
    if power.growth <= 0:
        return "sessions of both arms"
    more = math.ceil((_ENOUGH - power.log) / power.growth)
    return f"about {max(more, 1)} more sessions of the candidate"


def _size(bins: Bins) -> int:
    return sum(count for _, count in bins)


def _beyond(bins: Bins, edge: int) -> int:
    return sum(count for index, count in bins if index > edge)


def _edge(bins: Bins, share: float) -> int:
    """The bin beyond which nearest to this share of the sessions lie."""
    whole, left = _size(bins), _size(bins)
    best, distance = BINS - 1, 1.0
    for index, count in bins:
        left -= count
        off = abs(left / whole - share)
        if off <= distance:
            best, distance = index, off
    return best
