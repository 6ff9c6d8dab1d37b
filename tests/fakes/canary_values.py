"""Values of canaries that tests start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.control.state.canary.canary import Canary, Counted
from penstock.control.state.canary.counts import ArmCounts, Counts, Reading, StepCounts
from penstock.control.state.canary.guards import Finding, Verdict
from penstock.control.state.canary.spec import CanarySpec, Step, Target
from penstock.control.state.cluster import Gateway, GatewayReport, GatewayState
from tests.fakes.control_values import NOON

CANARY_UID = "c1"
STEPS = (Step(100, min_sessions=10, min_seconds=60), Step(1000, min_sessions=10, min_seconds=60))


def canary(target: str = "mini", candidate: str = "next", **said: Any) -> Canary:
    """One of two steps, at its first, before its share is in the routes."""
    deployment, _, alias = target.partition(":")
    spec = CanarySpec("try", Target(deployment, alias), candidate, STEPS)
    stable = said.pop("stable", "mini")
    of_it = {name: said.pop(name) for name in ("shadow",) if name in said}
    return replace(
        Canary(replace(spec, **of_it), CANARY_UID, NOON, stable=stable, candidate=candidate), **said
    )


def finding(verdict: Verdict = Verdict.EQUAL, guard: str = "errors") -> Finding:
    """One guard's, with made-up figures."""
    return Finding(guard, verdict, 0.001, 0.02, 900, 100, 5.0, 4.6)


def arm(sessions: int, bad: int = 0) -> ArmCounts:
    """So many sessions, of which some broke."""
    return ArmCounts(
        sessions=sessions, bad_sessions=bad, answered_sessions=sessions - bad, requests=sessions
    )


def counted(stable: int = 90, candidate: int = 10, step: int = 1) -> Counted:
    """What one gateway counted."""
    counts = Counts(arm(stable), arm(candidate))
    return Counted(CANARY_UID, step, (Reading("g0", "i0", NOON, counts),))


def gateway(
    name: str, counts: Counts | None = None, *, step: int = 1, instance: str = "i0"
) -> Gateway:
    """One that reports, and has the step's rule where it has counts of it."""
    told = (StepCounts(CANARY_UID, step, counts),) if counts else ()
    report = GatewayReport(NOON, 1, instance=instance, canaries=told)
    return Gateway(name, GatewayState.REMOTE, report=report, reporting=True)
