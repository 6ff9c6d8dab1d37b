"""What a candidate is held to: declared before the run, in a TOML file or word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.declared import BadThresholds, numbers
from penstock.evals.comparison.gate import Bound, Limit
from penstock.evals.comparison.patterns import REFUSALS, compiled

FEWEST_PROMPTS: Final = 10
"""Below it no threshold of `min_prompts` may go: so few prompts say nothing of others."""


def _met(key: str, kind: str, words: str) -> Limit:
    return Limit(key, f"share of answers that {words}", Bound.LEAST, (0, 1), check=kind)


LIMITS: Final = (
    Limit("max_loss_rate", "share of prompts lost to the baseline", Bound.MOST, (0, 1)),
    Limit("min_score_diff", "mean score above the baseline's", Bound.LEAST, (-1, 1), unit="score"),
    Limit(
        "max_error_rate", "share of requests without an answer", Bound.MOST, (0, 1), certain=False
    ),
    Limit("min_win_rate", "share won of the prompts that are no tie", Bound.LEAST, (0, 1)),
    Limit("min_score", "mean score", Bound.LEAST, (0, 1), unit="score"),
    Limit("min_similarity", "mean similarity to the reference", Bound.LEAST, (0, 1), unit="score"),
    Limit("max_refusal_rate", "share of answers that refuse", Bound.MOST, (0, 1)),
    Limit(
        "max_latency_ratio", "latency, times the baseline's", Bound.MOST, (0, 1000), unit="times"
    ),
    _met("min_exact_rate", "exact", "equal the reference"),
    _met("min_contains_rate", "contains", "contain what they must"),
    _met("min_contains_any_rate", "contains_any", "contain one of what they must"),
    _met("min_not_contains_rate", "not_contains", "contain nothing that they must not"),
    _met("min_regex_rate", "regex", "match their pattern"),
    _met("min_schema_validity", "json_schema", "are JSON of their schema"),
    _met("min_length_rate", "length", "are of the length asked for"),
    _met("min_refusal_check_rate", "refusal", "refuse, or do not, as they should"),
)
"""Figures that can be held to a limit, in the order of the reports."""

DEFAULTS: Final[Mapping[str, float]] = {
    "max_loss_rate": 0.2,
    "min_score_diff": -0.1,
    "max_error_rate": 0.01,
}
"""Limits that hold unless others are declared."""

_KNOWN: Final = {limit.key: limit for limit in LIMITS}
_SETTINGS: Final[Mapping[str, tuple[float, float]]] = {
    "min_prompts": (FEWEST_PROMPTS, 1e9),
    "tie_margin": (0, 0.5),
    "confidence": (0.8, 0.999),
    "max_baseline_error_rate": (0, 1),
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a run is judged by."""

    limits: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULTS))
    declared: frozenset[str] = frozenset()  # the others are defaults
    min_prompts: int = 20  # that can be compared; with fewer nothing passes
    tie_margin: float = 0.01  # differences of scores up to it are ties
    confidence: float = 0.95  # of all intervals
    max_baseline_error_rate: float = 0.1  # above it there is too little to compare with
    refusals: tuple[re.Pattern[str], ...] = tuple(map(re.compile, REFUSALS))

    def check(self, kinds: Collection[str], *, references: bool) -> None:
        """Raises `BadThresholds` where a limit stands on a check that no prompt has."""
        for key in self.limits:
            needs = _KNOWN[key].check
            if needs and needs not in kinds:
                raise BadThresholds(f"{key}: no prompt of the dataset has the check {needs}")
        if "min_similarity" in self.limits and not references:
            raise BadThresholds("min_similarity: no prompt of the dataset has a reference")


def thresholds(told: Mapping[str, Any]) -> Thresholds:
    """What was declared, with defaults for the rest. Raises `BadThresholds`."""
    told = dict(told)
    refusals = _refusals(told.pop("refusal_patterns", list(REFUSALS)))
    within = {limit.key: limit.within for limit in LIMITS}
    limits, settings = numbers(told, within, _SETTINGS, "refusal_patterns")
    return Thresholds(
        limits={**DEFAULTS, **limits}, declared=frozenset(told), refusals=refusals, **settings
    )


def _refusals(told: object) -> tuple[re.Pattern[str], ...]:
    if not isinstance(told, list) or not told:
        raise BadThresholds("refusal_patterns: must be a list of regular expressions")
    try:
        return tuple(compiled(each) for each in told)
    except BadCheck as bad:
        raise BadThresholds(f"refusal_patterns: {bad}") from bad
