"""What becomes of a canary, second by second: one function from where it stands and what is known
to where it stands next. Pure.

It goes back on evidence alone, and on evidence alone it goes on: what is not known holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.control.state.canary.canary import (
    Canary,
    CanaryState,
    Counted,
    PassedStep,
    ended,
)
from penstock.control.state.canary.counts import Counts
from penstock.control.state.canary.facts import Facts, Rollout
from penstock.control.state.canary.guards import Finding, Verdict
from penstock.control.state.canary.spec import WHOLE

WORSE, UNDECIDED = "worse", "undecided"  # of a shadow


def decided(canary: Canary, counted: Counted, found: Sequence[Finding], facts: Facts) -> Canary:
    """The canary as it stands next; the same one where nothing moves it. What the change asks of
    deployments and aliases follows from the two (`ending.py`)."""
    if not canary.is_active:
        return canary
    if canary.promoting and facts.rollout is Rollout.SERVED:
        return _promoting(canary, facts)  # everybody has it: that is no more to be taken back
    if why := _worse(canary, found, facts):
        return ended(canary, CanaryState.ROLLED_BACK, why, facts.now)
    if facts.gone:
        return _held(canary, facts.gone)
    if canary.promoting:
        return _promoting(canary, facts)
    if not canary.weighted:
        return _weighted(canary, facts)
    if canary.routed_at is None and not (facts.silent or facts.behind):
        canary = replace(canary, routed_at=facts.now)
    if canary.state is CanaryState.PAUSED:
        return canary
    return _going_on(canary, counted.counts, found, facts)


def missing(
    canary: Canary, counted: Counted, found: Sequence[Finding], facts: Facts
) -> tuple[str, ...]:
    """What there has to be before an active one goes on, whether or not it is paused."""
    if facts.gone:
        return (facts.gone,)
    if canary.promoting:
        return (canary.why,) if canary.why else ()
    if not canary.weighted:
        return (_few(canary, facts),) if facts.ready < facts.wanted else ()
    return (*_unknown(canary, facts), *_lacking(canary, counted.counts, found, facts))


def _worse(canary: Canary, found: Sequence[Finding], facts: Facts) -> str:
    """Why it rolls back; empty: it does not."""
    bad = [told(each) for each in found if each.verdict is Verdict.WORSE]
    if facts.shadow == WORSE:
        bad.append(f"shadow {canary.spec.shadow} finds it worse")
    if canary.candidate_digest and not canary.promoting and facts.rollout is Rollout.FAILED:
        bad.append(f"{canary.candidate} failed: {facts.rollout_cause}")
    return "; ".join(bad)


def _promoting(canary: Canary, facts: Facts) -> Canary:
    """An alias moves with the transaction that says so (`ending.py`)."""
    where = f"revision {canary.revision} of {canary.target}"
    match facts.rollout:
        case Rollout.SERVED:
            why = f"{where} serves, with the template of {canary.candidate}"
            return ended(canary, CanaryState.PROMOTED, why, facts.now)
        case Rollout.FAILED:
            return _held(canary, f"{where} failed: {facts.rollout_cause}: promote again, or abort")
        case Rollout.PAUSED:
            return _held(canary, f"{where} is paused: `penstock rollout resume` goes on")
        case Rollout.UNDER_WAY:
            return replace(canary, state=CanaryState.RUNNING, why=f"{where} is rolled out")
    return canary


def _weighted(canary: Canary, facts: Facts) -> Canary:
    """Its step's share comes once so many replicas are ready."""
    if canary.state is CanaryState.PAUSED:
        return canary
    if facts.ready < facts.wanted:
        return _held(canary, _few(canary, facts))
    return replace(canary, state=CanaryState.RUNNING, why="", weighted=True, routed_at=None)


def _going_on(canary: Canary, counts: Counts, found: Sequence[Finding], facts: Facts) -> Canary:
    unknown, lacking = list(_unknown(canary, facts)), list(_lacking(canary, counts, found, facts))
    if not (unknown or lacking):
        return _passed(canary, found, facts.now)
    why = "; ".join((*unknown, *lacking))
    spreads = unknown and canary.routed_at is None and not facts.silent
    if (unknown and not spreads) or _stood(canary, facts.now):
        return _held(canary, why)
    return replace(canary, state=CanaryState.RUNNING, why=why)


def _unknown(canary: Canary, facts: Facts) -> Iterator[str]:
    """What is in the way, whatever the clients do."""
    yield from facts.silent
    if facts.behind:
        yield f"{', '.join(facts.behind)} do not route by step {canary.step} yet"
    if facts.ready < facts.wanted:
        yield _few(canary, facts)
    if facts.shadow == UNDECIDED:
        yield f"shadow {canary.spec.shadow} has no verdict"


def _lacking(
    canary: Canary, counts: Counts, found: Sequence[Finding], facts: Facts
) -> Iterator[str]:
    """What time and clients bring."""
    step, arms = canary.now, [("candidate", counts.candidate)]
    if step.permille < WHOLE:  # else nobody is in the stable arm
        arms.append(("stable", counts.stable))
    for name, arm in arms:
        if arm.sessions < step.min_sessions:
            yield f"the {name} arm has {arm.sessions} of {step.min_sessions} sessions"
    if canary.routed_at and not _stood(canary, facts.now):
        until = canary.routed_at + timedelta(seconds=step.min_seconds)
        yield f"it stands until {until:%H:%M:%S} at least"
    if not found:
        yield "no guard has anything to judge"
    missing = [each for each in found if each.verdict is Verdict.UNDECIDED]
    yield from (f"{each.guard}: {each.missing or 'undecided'}" for each in missing)


def _stood(canary: Canary, now: datetime) -> bool:
    """Whether its share has been everywhere for as long as it has to."""
    since = canary.routed_at
    return since is not None and now - since >= timedelta(seconds=canary.now.min_seconds)


def _passed(canary: Canary, found: Sequence[Finding], now: datetime) -> Canary:
    """At the next step; at its end after the last."""
    figures = tuple((each.guard, told(each)) for each in found)
    step = PassedStep(canary.step, canary.now.permille, now, figures)
    canary = replace(
        canary, state=CanaryState.RUNNING, passed=(*canary.passed, step), why=_summary(step)
    )
    if canary.step == len(canary.spec.steps):
        return replace(canary, promoting=True)
    return replace(canary, step=canary.step + 1, weighted=False, routed_at=None)


def _held(canary: Canary, why: str) -> Canary:
    state = canary.state if canary.state is CanaryState.PAUSED else CanaryState.HELD
    return replace(canary, state=state, why=why)


def _few(canary: Canary, facts: Facts) -> str:
    said = (
        f"{canary.now.permille} permille of {canary.target} want {facts.wanted} ready replicas of"
        f" {canary.candidate}, there are {facts.ready}"
    )
    return f"{said}: {facts.why_few}" if facts.why_few else said


def _summary(step: PassedStep) -> str:
    figures = "; ".join(text for _, text in step.figures)
    return f"step {step.step} ({step.permille} permille) is passed" + (figures and f": {figures}")


def told(finding: Finding) -> str:
    """A finding with its figures, in a line."""
    return (
        f"{finding.guard} {finding.verdict}: {_share(finding.candidate)} of"
        f" {finding.candidate_sessions} sessions, against {_share(finding.stable)} of"
        f" {finding.stable_sessions}"
    )


def _share(value: float) -> str:
    return f"{value * 100:.3g} %"
