"""What a comparison comes to: each check, and the whole. A value, as JSON and as Markdown. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from penstock.evals.comparison.betting import Codes, Verdict, estimate, verdicts, whole
from penstock.evals.comparison.checks.between import times
from penstock.evals.comparison.plan import missing
from penstock.evals.comparison.rules import Check, Unit
from penstock.evals.comparison.tally import Tally
from penstock.evals.comparison.text import cell
from penstock.evals.comparison.worst import Kept
from penstock.evals.comparison.worst import as_dict as kept_as_dict
from penstock.evals.comparison.worst import as_markdown as kept_as_markdown

FORMAT: Final = "penstock-shadow/1"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check came out."""

    check: Check
    verdict: Verdict
    pairs: int  # counted, in which it could be made
    difference: float | None  # their mean; None: it could never be made
    of_all: float | None  # the mean of all pairs, later ones of a session too
    missing: int | None  # pairs until it is decided, as it looks; None: decided, or too few to tell
    histogram: tuple[int, ...]  # of the counted differences, from -1 to 1
    path: tuple[tuple[int, float, float], ...]
    """At so many sessions, how much of the way to the limit the bets on worse and on equal had
    come."""

    @property
    def made(self) -> bool:
        """Whether any pair said something."""
        return self.pairs > 0


@dataclass(frozen=True, slots=True)
class Report:
    """How all came out."""

    primary: str
    candidate: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    pairs: int
    counted: int  # sessions
    again: int  # of these, with the self arm
    left_out: Mapping[str, int]
    made_by: Mapping[str, int]
    alpha: float
    hits: Mapping[str, int] = field(default_factory=dict)  # of guardrails, by whose and which
    versions: Mapping[str, int] = field(default_factory=dict)  # of whole answers: "candidate x@1"
    kept: Kept | None = None  # None: no texts are

    @property
    def changes(self) -> tuple[str, ...]:
        """Sentences: who answered as several versions, which the verdict speaks of together."""
        arms = [each.partition(" ")[0] for each, count in self.versions.items() if count]
        return tuple(
            f"The {arm} changed meanwhile: {arms.count(arm)} versions of it answered, and the "
            "verdict speaks of them together."
            for arm in dict.fromkeys(arms)
            if arms.count(arm) > 1
        )

    @property
    def missing(self) -> int | None:
        """Sessions until the last gate is decided, as it looks, at the share of them that says
        something to it. None: decided, or too few to tell."""
        waiting = [e for e in self.findings if e.check.gate and e.made and not e.verdict]
        if self.verdict or not waiting or any(each.missing is None for each in waiting):
            return None
        return max(math.ceil((e.missing or 0) * self.counted / e.pairs) for e in waiting)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences: what decided it, or what it waits for, and which gates nothing could open."""
        gates = [each for each in self.findings if each.check.gate]
        told = [_sentence(each) for each in gates if each.made and each.verdict is self.verdict]
        if self.verdict in (Verdict.EQUAL, Verdict.BETTER):
            told = [_sentence(each) for each in gates if each.made]
        unmade = [
            f"Not checked: {e.check.name}, which needs {e.check.needs}."
            for e in gates
            if not e.made
        ]
        return (*(told or ["No pair could be compared."]), *self.changes, *unmade)


def summary(report: Report) -> tuple[str, ...]:
    """Sentences: what was counted, what was not, and who answered."""
    return (
        f"{report.pairs:,} pairs, of which {report.counted:,} count (the first of each session "
        f"that can be compared), {report.again:,} of these with the primary asked again.",
        f"An equal candidate is ever called worse with a chance of at most {report.alpha:.0%}.",
        *(f"Left out, {mark}: {count:,}." for mark, count in report.left_out.items()),
        *(f"Answered by {who}: {count:,}." for who, count in report.made_by.items()),
        *(f"Held by answers, {what}: {count:,}." for what, count in report.hits.items()),
    )


def report(tally: Tally, primary: str, candidate: str) -> Report:
    """What has been counted so far comes to. A gate that no pair could be held to does not hold the
    verdict up, and is told of."""
    rules = tally.rules
    limits = np.array([rules.log_limit(each) for each in rules.checks])
    margins = np.array([each.margin for each in rules.checks])
    found = verdicts(tally.evidence, margins, limits)
    gates = np.array([each.gate for each in rules.checks]) & (tally.evidence[0] > 0)
    return Report(
        primary,
        candidate,
        Verdict(int(whole(found[gates]))) if gates.any() else Verdict.UNDECIDED,
        tuple(_finding(tally, n, check, found, limits[n]) for n, check in enumerate(rules.checks)),
        tally.pairs,
        tally.counted,
        tally.again,
        dict(tally.left_out),
        dict(tally.made_by),
        rules.alpha,
        dict(sorted(tally.hits.items())),
        dict(tally.versions),
    )


def _finding(tally: Tally, n: int, check: Check, found: Codes, log_limit: float) -> Finding:
    state, verdict = tally.evidence[:, n], Verdict(int(found[n]))
    seen, total = tally.seen[:, n]
    return Finding(
        check,
        verdict,
        int(state[0]),
        float(estimate(state)) if state[0] else None,
        float(total / seen) if seen else None,
        missing(state, check, log_limit) if verdict is Verdict.UNDECIDED else None,
        tuple(tally.histogram[:, n].tolist()),
        tuple((e.counted, e.worse[n] / log_limit, e.equal[n] / log_limit) for e in tally.path),
    )


def as_dict(report: Report) -> dict[str, Any]:
    """For JSON."""
    return {
        "format": FORMAT,
        "primary": report.primary,
        "candidate": report.candidate,
        "verdict": report.verdict.name.lower(),
        "reasons": list(report.reasons),
        "alpha": report.alpha,
        "pairs": report.pairs,
        "sessions": report.counted,
        "sessions_missing": report.missing,
        "self_pairs": report.again,
        "left_out": dict(report.left_out),
        "made_by": dict(report.made_by),
        "versions": dict(report.versions),
        "guardrail_hits": dict(report.hits),
        "checks": [_finding_as_dict(each) for each in report.findings],
        "records": None if report.kept is None else kept_as_dict(report.kept),
    }


def _finding_as_dict(finding: Finding) -> dict[str, Any]:
    check = finding.check
    return {
        "name": check.name,
        "gate": check.gate,
        "margin": check.margin,
        "unit": str(check.unit),
        "verdict": finding.verdict.name.lower() if finding.made else "not made",
        "pairs": finding.pairs,
        "difference": finding.difference,
        "difference_of_all": finding.of_all,
        "pairs_missing": finding.missing,
        "histogram": list(finding.histogram),
        "path": [list(each) for each in finding.path],
        "needs": None if finding.made else check.needs,
    }


def headline(report: Report) -> str:
    """The verdict in a line."""
    return f"{report.verdict.name.capitalize()}: {report.candidate} beside {report.primary}"


def as_markdown(report: Report) -> str:
    """The verdict, its reasons, and each check."""
    lines = [
        f"## {cell(headline(report))}",
        "",
        *(f"- {each}" for each in report.reasons),
        "",
        *(f"- {cell(each)}" for each in summary(report)),
        "",
        "| check | is | margin | candidate | pairs | verdict |",
        "|---|---|---:|---:|---:|---|",
        *(_row(each) for each in report.findings),
        *([kept_as_markdown(report.kept)] if report.kept else []),
    ]
    return "\n".join(lines) + "\n"


def _row(finding: Finding) -> str:
    check = finding.check
    cells = (
        *(check.name, "gate" if check.gate else "shown", written(check.margin, check.unit)),
        "-" if finding.difference is None else written(finding.difference, check.unit),
        *(f"{finding.pairs:,}", told(finding)),
    )
    return f"| {' | '.join(cells)} |"


def told(finding: Finding) -> str:
    """A check's verdict, or what it waits for."""
    if not finding.made:
        return f"not made: needs {finding.check.needs}"
    verdict = finding.verdict.name.lower()
    return verdict if finding.verdict else f"{verdict}: {_still(finding)}"


def _still(finding: Finding) -> str:
    if finding.missing is None:
        return "too few pairs to tell how many more"
    return f"about {finding.missing:,} more pairs"


def _sentence(finding: Finding) -> str:
    check = finding.check
    seen = "-" if finding.difference is None else written(finding.difference, check.unit)
    told = f"{check.name} ({check.words}): {seen} over {finding.pairs:,} pairs, margin "
    told += f"{written(check.margin, check.unit)}: {finding.verdict.name.lower()}"
    if finding.verdict is Verdict.UNDECIDED:
        told += f", {_still(finding)}"
    return f"{told}."


def written(difference: float, unit: Unit) -> str:
    """A difference as people read it."""
    if unit is Unit.RATIO:
        return f"x{times(difference):.2f}"
    return f"{difference:+.3f}" if unit is Unit.DISTANCE else f"{difference:+.1%}"
