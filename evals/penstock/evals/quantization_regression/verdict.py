"""Pairs to figures, slice by slice, and whether these are within their limits. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.evals.comparison.checks.between import times
from penstock.evals.comparison.checks.scores import perplexity_of
from penstock.evals.comparison.gate import (
    Result,
    Verdict,
    finding,
    silent_baseline,
    together,
    too_few,
)
from penstock.evals.comparison.intervals import Interval, mean_within, share
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.comparison.rules import Check, Unit
from penstock.evals.quantization_regression.texts import text_of
from penstock.evals.quantization_regression.thresholds import CHECKS, LIMITS, Held, Thresholds
from penstock.evals.shadow_compare.asking import ALL, Line


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of the dataset, and how it came out."""

    name: str
    prompts: int
    pairs: tuple[Pair, ...]  # what counts
    left_out: Mapping[str, int]  # pairs, by why
    figures: Mapping[str, Interval]  # by check, as far as pairs say something
    perplexity: tuple[float, float] | None  # of all its texts, by primary and candidate
    tokens: int  # that these were measured on
    unscored: Interval | None  # share of the primary's texts
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """How all slices came out: the whole dataset first."""

    result: Result
    slices: tuple[Slice, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences: what decided it, each with its slice."""
        if self.result is Result.PASS:
            return tuple(
                f"{each.name}: meets all {len(each.verdict.findings)} thresholds."
                for each in self.slices
            )
        decisive = [each for each in self.slices if each.verdict.result is self.result]
        return tuple(f"{e.name}: {reason}" for e in decisive for reason in e.verdict.reasons)


def judge(dataset: Sequence[Line], pairs: Sequence[Pair], held: Held, seed: int) -> Outcome:
    """One slice that fails fails all; all have to pass for a pass."""
    parts: dict[str, list[Pair]] = {ALL: list(pairs)}
    for line, pair in zip(dataset, pairs, strict=True):
        if line.slice:
            parts.setdefault(line.slice, []).append(pair)
    slices = tuple(_slice(name, part, held.of(name), seed) for name, part in parts.items())
    results = {each.verdict.result for each in slices}
    worst = (Result.FAIL, Result.INCONCLUSIVE, Result.PASS)
    return Outcome(next(each for each in worst if each in results), slices)


def _slice(name: str, pairs: Sequence[Pair], held: Thresholds, seed: int) -> Slice:
    counted, left_out = _counted(pairs)
    measured = {each.name: _figure(each, counted, held.confidence, seed) for each in CHECKS}
    figures = {check: found for check, found in measured.items() if found is not None}
    texts = [each for each in counted if text_of(each.primary)]
    scored = [each for each in texts if each.primary.logprobs]
    unscored = share(len(texts) - len(scored), len(texts), held.confidence)
    findings = [
        finding(limit, figures.get(limit.check), held.limits[limit.key], declared=declared)
        for limit in LIMITS
        if limit.key in held.limits
        # What nobody asked for and no prompt says anything of (JSON, tools) is in nobody's way.
        if (declared := limit.key in held.declared) or limit.check in figures
    ]
    return Slice(
        name,
        len(pairs),
        tuple(counted),
        left_out,
        figures,
        _perplexities(scored),
        sum(len(each.primary.logprobs or ()) for each in scored),
        unscored,
        together(findings, list(_doubts(counted, unscored, held))),
    )


def _doubts(counted: Sequence[Pair], unscored: Interval | None, held: Thresholds) -> Iterable[str]:
    failed = sum(each.primary.failed for each in counted)
    yield from too_few(len(counted) - failed, held.min_prompts)
    errors = share(failed, len(counted), held.confidence)
    yield from silent_baseline(errors, held.max_baseline_error_rate)
    if unscored is not None and unscored.value > held.max_unscored_rate:
        yield (
            f"{unscored.value:.0%} of the primary's {unscored.count} texts could not be scored, "
            f"more than {held.max_unscored_rate:.0%}: the scores say too little."
        )


def _counted(pairs: Sequence[Pair]) -> tuple[list[Pair], dict[str, int]]:
    """The first comparable pair of each session, and why the others are left out."""
    left_out = Counter(str(mark) for each in pairs for mark in each.marks)
    counted: dict[tuple[str, str], Pair] = {}
    for each in pairs:
        if not each.marks:
            counted.setdefault((each.session, "" if each.session else each.id), each)
    later = sum(not each.marks for each in pairs) - len(counted)
    return list(counted.values()), {**left_out, **({"later of a session": later} if later else {})}


def _figure(check: Check, pairs: Sequence[Pair], confidence: float, seed: int) -> Interval | None:
    measured = [check.measure(each) for each in pairs]
    found = mean_within([e for e in measured if e is not None], -1, 1, confidence, seed)
    if found is None or check.unit is not Unit.RATIO:
        return found
    return replace(found, low=times(found.low), value=times(found.value), high=times(found.high))


def _perplexities(scored: Sequence[Pair]) -> tuple[float, float] | None:
    def of_all(answers: Iterable[Answer]) -> float | None:
        return perplexity_of([log for each in answers for log in each.logprobs or ()])

    of, to = of_all(e.primary for e in scored), of_all(e.candidate for e in scored)
    return None if of is None or to is None else (of, to)


def harm(pair: Pair) -> float | None:
    """By how many octaves the candidate's perplexity of the text is higher; None: not scored."""
    of, to = perplexity_of(pair.primary.logprobs), perplexity_of(pair.candidate.logprobs)
    return None if of is None or to is None else math.log2(to / of)
