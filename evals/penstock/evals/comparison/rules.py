"""What a candidate is held to: which checks, which of them are gates, by how much. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.checks import (
    cost,
    emptiness,
    errors,
    finish_reason,
    json_validity,
    language,
    latency,
    length_ratio,
    match,
    refusal,
    scores,
    semantic,
    similarity,
    tokens,
    tool_calls,
)
from penstock.evals.comparison.checks.guardrails import Guard
from penstock.evals.comparison.checks.judge import judged
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.patterns import REFUSALS, compiled

Measure = Callable[[Pair], float | None]


class Unit(StrEnum):
    """What a mean difference is read as."""

    SHARE = "share"  # of pairs in which the candidate is worse, less those in which it is better
    DISTANCE = "distance"  # beyond the primary's own
    RATIO = "ratio"  # the candidate's, times the other's


@dataclass(frozen=True, slots=True)
class Check:
    """One check, and how much worse is too much."""

    name: str
    words: str
    measure: Measure
    margin: float
    gate: bool  # what the verdict goes by; the others are shown
    unit: Unit = Unit.SHARE
    needs: str = "answers from both"  # for a pair to say something

    @property
    def needs_self(self) -> bool:
        """Whether only pairs of the self arm say something."""
        return SELF in self.needs


SELF: Final = "the primary asked again (a self arm)"
_TOOLS: Final = "a request with tools"
_TEXT: Final = "a text of the primary's that both can score"
_TIME: Final = 0.07  # ten per cent
_SAME: Final = 0.05


def _ratio(name: str, words: str, measure: Measure, needs: str) -> Check:
    return Check(name, words, measure, 0.125, gate=False, unit=Unit.RATIO, needs=needs)


def _time(name: str, words: str, measure: Measure) -> Check:
    return Check(name, words, measure, _TIME, gate=True, unit=Unit.RATIO, needs=SELF)


def _far(name: str, words: str, measure: Measure, *, gate: bool = False, needs: str = "") -> Check:
    needs = f"{needs} and {SELF}" if needs else SELF
    return Check(name, words, measure, _SAME, gate, Unit.DISTANCE, needs)


def checks(guard: Guard, *, judge: bool, scored: bool = False) -> tuple[Check, ...]:
    """All checks with their defaults, in the order of reports; those of scores where there are
    any."""
    refused = partial(refusal.refusal, patterns=tuple(map(compiled, REFUSALS)))
    json, tools = json_validity.valid_json, tool_calls.valid_arguments
    asks_json = "a request that asks for JSON"
    return (
        Check("error", "no whole answer", errors.error, 0.01, gate=True),
        Check("finish_length", "cut off by its length", finish_reason.cut_off, 0.02, gate=True),
        Check("empty", "empty", emptiness.empty, 0.02, gate=True),
        Check("refusal", "refuses", refused, 0.02, gate=True),
        Check("json", "no JSON, or not of its schema", json, 0.01, gate=True, needs=asks_json),
        Check("tool_arguments", "arguments no tool takes", tools, 0.01, gate=True, needs=_TOOLS),
        _far("tool_names", "other tools", tool_calls.same_tools, gate=True, needs=_TOOLS),
        Check("guardrails", "holds what it must not", guard.guardrail, 0.005, gate=True),
        _time("ttft", "time to first token", latency.ttft),
        _time("tpot", "time between tokens", latency.tpot),
        _time("total", "time of the whole answer", latency.total),
        Check("judge", "liked less by a judge", judged, _SAME, gate=judge, needs="a judge's word"),
        _far("semantic", "other meaning", semantic.other_meaning, needs="an embedding deployment"),
        _far("language", "other language", language.other_language, needs="texts of 40 letters"),
        _far("similarity", "other words", similarity.unlike),
        _far("exact", "other text", match.exact),
        _far("normalised", "other text, but for case and marks", match.normalised),
        _far("tool_calls", "other calls", tool_calls.same_calls, needs=_TOOLS),
        _ratio("length", "length", length_ratio.length, "two texts"),
        _ratio("tokens", "tokens", tokens.tokens, "answers that count their tokens"),
        _ratio("cost", "cost", cost.cost, "answers with a price"),
        *(_of_scores() if scored else ()),
    )


def _of_scores() -> tuple[Check, ...]:
    perplexity = _ratio("perplexity", "of the primary's text", scores.perplexity, _TEXT)
    far = _far("logprobs", "nats a token of the primary's text", scores.logprobs, needs=_TEXT)
    return perplexity, far


@dataclass(frozen=True, slots=True)
class Rules:
    """What one comparison is held to. `rules` makes them."""

    checks: tuple[Check, ...]
    alpha: float = 0.05  # of ever calling a candidate worse that is not
    guard: Guard = field(default_factory=Guard, compare=False)  # of the check "guardrails"

    @property
    def gates(self) -> tuple[Check, ...]:
        """What the verdict goes by."""
        return tuple(each for each in self.checks if each.gate)

    def log_limit(self, check: Check) -> float:
        """What a capital must pass: gates share the error rate, what is only shown has its own."""
        return math.log((len(self.gates) if check.gate else 1) / self.alpha)


def rules(
    margins: Mapping[str, float] | None = None,
    gates: Collection[str] | None = None,
    guarded: Mapping[str, str] | None = None,
    alpha: float = 0.05,
    *,
    judge: bool = False,
    scored: bool = False,
    now: Callable[[], float] | None = None,
) -> Rules:
    """The defaults, with other margins or gates, and patterns beside those of personal data, whose
    time `now` takes; where there is a judge, it is a gate too, and where the primary's text is
    scored, checks go by that. Raises `BadCheck`."""
    guard = Guard.of(guarded or {}, now)
    found = checks(guard, judge=judge, scored=scored)
    known = [each.name for each in found]
    for name in (*(margins or {}), *(gates or ())):
        if name not in known:
            raise BadCheck(f"there is no check {name!r}: there are {', '.join(known)}")
    for name, margin in (margins or {}).items():
        if not 0 < margin < 1:
            raise BadCheck(f"the margin of {name} is {margin:g}: it must lie between 0 and 1")
    if not 0 < alpha <= 0.5:
        raise BadCheck(f"alpha is {alpha:g}: it must lie between 0 and 0.5")
    return Rules(
        tuple(
            replace(
                each,
                margin=(margins or {}).get(each.name, each.margin),
                gate=each.gate if gates is None else each.name in gates,
            )
            for each in found
        ),
        alpha,
        guard,
    )
