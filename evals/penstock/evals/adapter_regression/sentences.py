"""What a run found, in sentences: the titles of the reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.evals.adapter_regression.comparison import Comparison, Outcome, Pair
from penstock.evals.adapter_regression.document import Run
from penstock.evals.comparison.figures import as_written, between, counted
from penstock.evals.comparison.gate import Result

LABELS: Final[Mapping[str, str]] = {
    "exact": "same as reference",
    "contains": "contains all",
    "contains_any": "contains one of",
    "not_contains": "nothing forbidden",
    "regex": "matches pattern",
    "json_schema": "valid JSON",
    "similarity": "like the reference",
    "length": "right length",
    "refusal": "refuses rightly",
}
"""Checks, as reports call them."""

_EVEN: Final = 0.005  # what rounds to no difference at two decimals


def headline(run: Run) -> str:
    """The verdict."""
    who, findings = f"{run.candidate}, compared with {run.baseline},", run.verdict.findings
    missed = sum(each.result is Result.FAIL for each in findings)
    return {
        Result.PASS: f"Pass: {who} meets all {len(findings)} thresholds",
        Result.FAIL: f"Fail: {who} misses {missed} of {len(findings)} thresholds",
        Result.INCONCLUSIVE: f"Not enough to tell whether {who} meets its thresholds",
    }[run.verdict.result]


def outcomes(run: Run) -> str:
    """Who won how often."""
    found = run.comparison
    if not found.compared:
        return "No prompt could be compared"
    losses = f"lost {found.losses}" if found.losses else "lost none"
    return (
        f"Of {counted(found.compared, 'prompt')} {run.candidate} won {found.wins or 'none'}, "
        f"{losses} and tied {found.ties or 'none'}"
    )


def scores(run: Run) -> str:
    """By how much the scores differ."""
    found = run.comparison.difference
    if found is None:
        return "There is no difference of scores to tell"
    if abs(found.value) < _EVEN:
        said = "Both have the same mean score"
    else:
        way = "higher" if found.value > 0 else "lower"
        said = f"Its mean score is {abs(found.value):.2f} {way}"
    return f"{said} ({between(found, 'score')} for all prompts of the kind)"


def checks(run: Run) -> str:
    """Which checks are met more, and which less."""
    of, to = run.comparison.candidate.checks, run.comparison.baseline.checks
    moved = {kind: of[kind].value - to[kind].value for kind in of if kind in to}
    more = [LABELS[kind] for kind, by in moved.items() if by >= _EVEN]
    less = [LABELS[kind] for kind, by in moved.items() if by <= -_EVEN]
    if not more and not less:
        return "Both meet every check equally often"
    parts = [f"better at: {', '.join(more)}"] if more else []
    parts += [f"worse at: {', '.join(less)}"] if less else []
    return f"{run.candidate} is {'; '.join(parts)}"


def latency(run: Run) -> str:
    """How much longer answers take."""
    found = run.comparison.latency_ratio
    if found is None:
        return "Too few answers to compare how long they take"
    return (
        f"Answers of {run.candidate} take {as_written(found.value, 'times')} the time of "
        f"{run.baseline}'s ({between(found, 'times')})"
    )


def lengths(run: Run) -> str:
    """How long answers are."""
    of, to = run.comparison.candidate.words_p50, run.comparison.baseline.words_p50
    if of is None or to is None:
        return "Too few answers to compare their lengths"
    if of == to:
        return f"Answers are equally long, {of:g} words at the median"
    return f"Answers have {of:g} words at the median, those of {run.baseline} {to:g}"


def spread(run: Run) -> str:
    """Where the difference comes from."""
    moved = [p for p in run.comparison.pairs if p.outcome in (Outcome.WIN, Outcome.LOSS)]
    if not moved:
        return "No prompt sets the two apart"
    worst = losses(run.comparison)
    said = f"{counted(len(moved), 'prompt')} set{'s' if len(moved) == 1 else ''} the two apart"
    return f"{said}; the worst loss is {worst[0].prompt.id}" if worst else f"{said}, none a loss"


def losses(found: Comparison) -> list[Pair]:
    """The pairs that were lost, the worst first."""
    lost = [each for each in found.pairs if each.outcome is Outcome.LOSS]
    return sorted(lost, key=lambda each: (each.difference, each.prompt.id))


def asked(pair: Pair) -> str:
    """What the prompt asks: its last message."""
    return pair.prompt.messages[-1]["content"]
