"""Service level objectives: what an operator asks of a deployment, and how fast its requests use up
what may be bad. Pure.

Gateways judge each request as it ends, by `gateway_cpp/src/base/slo.cc`, and tell counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from penstock.control.declared.fields import check, inner, setting
from penstock.control.errors import InvalidSpec

LONGEST_MS: Final = 24 * 3600 * 1000
WINDOWS: Final = (timedelta(minutes=5), timedelta(hours=1), timedelta(hours=6))
"""Over which burn rates are told, the shortest first."""


class Objective(StrEnum):
    """One of them, as gateways and metrics call it."""

    TTFT = "ttft_p50"
    TOTAL = "total_p99"
    ERRORS = "error_rate"


def _within(text: str) -> Any:
    return setting(text, 0, unit="milliseconds", ge=0, le=LONGEST_MS)


@dataclass(frozen=True, slots=True)
class Slo:
    """What a deployment's requests are to be; 0: nothing is asked. Raises InvalidSpec."""

    ttft_p50_ms: int = _within(
        "objective: half of the streams have their first token within so many {unit}; 0: none"
    )
    total_p99_ms: int = _within(
        "objective: 99 of 100 answers are whole within so many {unit}; 0: none"
    )
    error_rate: float = setting(
        "objective: the {unit} of requests that may be answered with an error that is not their"
        " client's; 0: none",
        0.0,
        unit="share",
        ge=0,
        le=1,
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec, within="slo.")

    def budgets(self) -> dict[Objective, float]:
        """Of each objective that is asked for: the share of requests that may be bad."""
        asked = {
            Objective.TTFT: 0.5 if self.ttft_p50_ms else 0,
            Objective.TOTAL: 0.01 if self.total_p99_ms else 0,
            Objective.ERRORS: self.error_rate,
        }
        return {objective: share for objective, share in asked.items() if share}

    def target(self, objective: Objective) -> str:
        """What is asked, for people."""
        match objective:
            case Objective.TTFT:
                return f"first token within {self.ttft_p50_ms} ms for half"
            case Objective.TOTAL:
                return f"whole within {self.total_p99_ms} ms for 99 %"
            case Objective.ERRORS:
                return f"errors for {self.error_rate * 100:g} % at most"


@dataclass(frozen=True, slots=True)
class Objectives:
    """The settings of a deployment that say what its requests are to be."""

    slo: Slo = inner(Slo, prefix="slo.")


@dataclass(frozen=True, slots=True)
class SloCount:
    """Requests that an objective has judged; fields as in slo.proto, `SloReport`."""

    objective: str
    requests: int = 0
    bad: int = 0  # of these

    def plus(self, other: SloCount) -> SloCount:
        """Both together."""
        return SloCount(self.objective, self.requests + other.requests, self.bad + other.bad)

    def since(self, earlier: SloCount) -> SloCount:
        """What came on top; all of it where the counts shrank, for then a process began anew."""
        if self.requests < earlier.requests or self.bad < earlier.bad:
            return self
        requests, bad = self.requests - earlier.requests, self.bad - earlier.bad
        return SloCount(self.objective, requests, bad)


@dataclass(frozen=True, slots=True)
class Burn:
    """How fast one objective's budget is used up, over one window: at 1, just within it."""

    objective: Objective
    target: str  # for people
    window: timedelta
    requests: int  # that were judged
    bad: int
    rate: float


def burns(slo: Slo, counts: Iterator[tuple[timedelta, SloCount]]) -> tuple[Burn, ...]:
    """Of each objective that is asked for, by what was counted of it in each window: 0 where nothing
    was."""
    budgets = slo.budgets()
    return tuple(
        Burn(
            objective := Objective(count.objective),
            slo.target(objective),
            window,
            count.requests,
            count.bad,
            count.bad / count.requests / budgets[objective] if count.requests else 0.0,
        )
        for window, count in counts
        if count.objective in budgets
    )
