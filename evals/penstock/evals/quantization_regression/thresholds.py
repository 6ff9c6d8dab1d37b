"""What a quantised deployment is held to, slice by slice: declared before the run. Pure.

Each check of pairs can be held to a limit: `max_` and its name. A slice's own limits go before
those of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.evals.comparison.declared import BadThresholds, numbers
from penstock.evals.comparison.gate import Bound, Limit
from penstock.evals.comparison.rules import Check, Unit, rules

CHECKS: Final = rules(scored=True).checks
"""Those of shadows, and of scores."""
_UNITS: Final[Mapping[Unit, tuple[str, str, tuple[float, float]]]] = {
    Unit.SHARE: ("share", "share beyond the primary's", (0, 1)),
    Unit.DISTANCE: ("score", "beyond the primary's own", (0, 1)),
    Unit.RATIO: ("times", "times the other's", (0, 4)),
}


def _limit(check: Check) -> Limit:
    unit, beyond, within = _UNITS[check.unit]
    words = f"{check.name} ({check.words}), {beyond}"
    return Limit(f"max_{check.name}", words, Bound.MOST, within, check=check.name, unit=unit)


LIMITS: Final = tuple(map(_limit, CHECKS))
"""In the order of the reports."""

DEFAULTS: Final[Mapping[str, float]] = {
    **{f"max_{each.name}": 0.05 for each in CHECKS if each.gate and each.unit is Unit.SHARE},
    "max_tool_names": 0.1,
    "max_perplexity": 1.05,
    "max_logprobs": 0.05,
}
"""Limits that hold unless others are declared."""

_WITHIN: Final = {limit.key: limit.within for limit in LIMITS}
_SETTINGS: Final[Mapping[str, tuple[float, float]]] = {
    "min_prompts": (10, 1e9),
    "confidence": (0.8, 0.999),
    "max_baseline_error_rate": (0, 1),
    "max_unscored_rate": (0, 1),
}
_SLICES: Final = "slices"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What one slice is judged by."""

    limits: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULTS))
    declared: frozenset[str] = frozenset()  # the others are defaults
    min_prompts: int = 20  # that can be compared; with fewer nothing passes
    confidence: float = 0.95  # of all intervals
    max_baseline_error_rate: float = 0.1  # above it there is too little to compare with
    max_unscored_rate: float = 0.1  # of the primary's texts; above it the scores say too little

    def with_own(self, told: Mapping[str, Any]) -> Thresholds:
        """These, with what was declared beside them. Raises `BadThresholds`."""
        limits, settings = numbers(told, _WITHIN, _SETTINGS)
        return replace(
            self, limits={**self.limits, **limits}, declared=self.declared | set(told), **settings
        )


@dataclass(frozen=True, slots=True)
class Held:
    """What all slices are judged by."""

    common: Thresholds = field(default_factory=Thresholds)
    slices: Mapping[str, Thresholds] = field(default_factory=dict)

    def of(self, name: str) -> Thresholds:
        """What that slice is judged by."""
        return self.slices.get(name, self.common)

    def check(self, names: Collection[str]) -> None:
        """Raises `BadThresholds` where a slice is held to something and no line is in it."""
        for name in self.slices:
            if name not in names:
                raise BadThresholds(f"slices.{name}: no line of the dataset is in that slice")


def thresholds(told: Mapping[str, Any]) -> Held:
    """What was declared: keys, tables `slices.NAME` of keys, and `NAME.key`, as command lines have
    it; with defaults for the rest. Raises `BadThresholds`."""
    common = Thresholds().with_own({k: v for k, v in told.items() if k != _SLICES and "." not in k})
    own = told.get(_SLICES, {})
    if not isinstance(own, dict) or not all(isinstance(each, dict) for each in own.values()):
        raise BadThresholds("slices: must be tables, one a slice: [slices.safety]")
    slices = {name: dict(each) for name, each in own.items()}
    for key, value in told.items():
        if "." in key:
            name, _, of_it = key.rpartition(".")
            slices.setdefault(name, {})[of_it] = value
    return Held(common, {name: common.with_own(each) for name, each in slices.items()})
