"""What simulated gateways count of a canary, and what a head keeps of its records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.control.managers.canary.records import Account
from penstock.control.state.canary.counts import Counts, StepCounts
from penstock.control.state.canary.routes import CanaryRoute
from penstock.control.state.routing.snapshot import Routes
from tests.fakes.canary_values import arm


@dataclass
class SimulatedBook:
    """The counts of one process of a gateway, of the one canary that there is."""

    instance: str = "first"
    rule: CanaryRoute | None = None
    counts: Counts = field(default_factory=Counts)

    def follows(self, routes: Routes) -> None:
        """Another step's counts begin at 0."""
        rule = next(iter(routes.canaries), None)
        if (rule and (rule.uid, rule.step)) != (self.rule and (self.rule.uid, self.rule.step)):
            self.counts = Counts()
        self.rule = rule

    def serves(self, sessions: int, fails: float, stable_fails: float = 0) -> None:
        """So many come, and fall to the arms by the rule's share; of each, a share fails."""
        if self.rule is None:
            return
        candidate = sessions * self.rule.permille // 1000
        stable = sessions - candidate
        both = arm(stable, int(stable * stable_fails)), arm(candidate, int(candidate * fails))
        self.counts = self.counts.plus(Counts(*both))

    def told(self) -> tuple[StepCounts, ...]:
        """As it reports them."""
        return (StepCounts(self.rule.uid, self.rule.step, self.counts),) if self.rule else ()


class SimulatedReports:
    """Keeps records, and knows no shadow."""

    def __init__(self) -> None:
        self.kept_reports: list[Mapping[str, Any] | None] = []

    @asynccontextmanager
    async def kept(self, report: Mapping[str, Any] | None) -> AsyncIterator[str]:
        self.kept_reports.append(report)
        yield f"{len(self.kept_reports):064}"

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Account:
        raise AssertionError(f"asked of the shadow {uid}")
