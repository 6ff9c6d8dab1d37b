"""A run as one HTML page that needs nothing else and runs nothing. Pure.

What a model or a dataset said is in `page_answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from penstock.evals.adapter_regression import sentences
from penstock.evals.adapter_regression.comparison import Outcome
from penstock.evals.adapter_regression.document import Run
from penstock.evals.adapter_regression.page_answers import losses, others
from penstock.evals.adapter_regression.scores import Answer
from penstock.evals.comparison import plots
from penstock.evals.comparison.figures import counted
from penstock.evals.comparison.gate_report import figure, header, page_table
from penstock.evals.comparison.page_shell import whole_page


def as_page(run: Run) -> str:
    """The whole page."""
    body = "\n".join(
        [*_head(run), *_thresholds(run), *_figures(run), *losses(run), *others(run), *_how(run)]
    )
    return whole_page(sentences.headline(run), body)


def _head(run: Run) -> Iterable[str]:
    yield from header(run.verdict.result, sentences.headline(run), run.verdict.reasons)
    yield (
        f'<p class="facts">Asked: <b class="candidate">{escape(run.candidate.model)}</b> (the '
        f'candidate) and <b class="baseline">{escape(run.baseline.model)}</b> (the baseline), '
        f"{counted(len(run.dataset.prompts), 'prompt')} of "
        f"{escape(run.dataset_name)} each, {run.at:%Y-%m-%d %H:%M} UTC.</p>"
    )


def _thresholds(run: Run) -> Iterable[str]:
    yield "<h2>What it was held to</h2>"
    yield from page_table(run.verdict.findings, run.thresholds.confidence)


def _figures(run: Run) -> Iterable[str]:
    found, names = run.comparison, (str(run.candidate), str(run.baseline))
    counts = {"win": found.wins, "tie": found.ties, "loss": found.losses}
    if left := len(found.pairs) - found.compared:
        counts["uncompared"] = left
    yield figure(sentences.outcomes(run), plots.outcomes(counts), _legend(counts, run))
    compared = [p.difference for p in found.pairs if p.outcome is not Outcome.NOT_COMPARED]
    yield figure(
        sentences.scores(run),
        plots.differences(compared),
        f"A bar a prompt, sorted: up, {escape(names[0])} scored higher; down, lower. "
        f"{escape(sentences.spread(run))}. A score is the mean of a prompt's checks, 0 to 1.",
    )
    of, to = found.candidate.checks, found.baseline.checks
    rows = {sentences.LABELS[kind]: (of[kind], to[kind]) for kind in of if kind in to}
    yield figure(sentences.checks(run), plots.dumbbells(rows, names), _both(run))
    yield figure(
        sentences.latency(run),
        plots.strips(
            _by_side(run, lambda answer: answer.latency_ms), ("candidate", "baseline"), "ms"
        ),
        f"A dot is an answer, the line their median. {_both(run)}",
    )
    yield figure(
        sentences.lengths(run),
        plots.strips(
            _by_side(run, lambda answer: len(answer.text.split())),
            ("candidate", "baseline"),
            "words",
        ),
        f"A dot is an answer, the line their median. {_both(run)}",
    )


def _legend(counts: dict[str, int], run: Run) -> str:
    words = {
        "win": f"{run.candidate} scored higher",
        "tie": f"as good, within {run.thresholds.tie_margin:g}",
        "loss": f"{run.candidate} scored lower, or gave no answer",
        "uncompared": f"{run.baseline} gave no answer",
    }
    parts = (f'<span class="key {kind}"></span>{escape(words[kind])}' for kind in counts)
    return " ".join(parts)


def _both(run: Run) -> str:
    return (
        f'<span class="key candidate"></span>{escape(str(run.candidate))} '
        f'<span class="key baseline"></span>{escape(str(run.baseline))}'
    )


def _by_side(run: Run, of: Callable[[Answer], float]) -> dict[str, list[float]]:
    pairs = run.comparison.pairs
    return {
        str(run.candidate): [of(p.candidate.answer) for p in pairs if not p.candidate.failed],
        str(run.baseline): [of(p.baseline.answer) for p in pairs if not p.baseline.failed],
    }


def _how(run: Run) -> Iterable[str]:
    settings = (
        ("Dataset", f"{run.dataset_name}, SHA-256 {run.dataset.sha256}"),
        ("Seed, temperature", f"{run.asking.seed}, {run.asking.temperature:g}"),
        ("Most tokens of an answer", str(run.asking.max_tokens)),
        ("Prompts at a time", str(run.asking.concurrency)),
        ("Refusals are what matches", "  ".join(e.pattern for e in run.thresholds.refusals)),
    )
    rows = "".join(f"<tr><th>{name}</th><td>{escape(told)}</td></tr>" for name, told in settings)
    yield f"<h2>How it was measured</h2><table>{rows}</table>"
    yield (
        '<p class="note">Both versions were asked each prompt one after the other, in a drawn '
        "order. Every answer named the version that made it, as it had to. Shares have Wilson's "
        "interval; means a bootstrap, whose ends also count one prompt that nobody asked, at its "
        "worst and at its best. Requests without an answer count as answers that meet no check; "
        "prompts that the baseline gave no answer to are not compared.</p>"
    )
