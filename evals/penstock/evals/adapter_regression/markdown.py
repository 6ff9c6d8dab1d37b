"""A run as Markdown: what stands in a change's discussion. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.evals.adapter_regression import sentences
from penstock.evals.adapter_regression.comparison import Pair
from penstock.evals.adapter_regression.document import Run
from penstock.evals.comparison.figures import counted
from penstock.evals.comparison.gate_report import markdown_table
from penstock.evals.comparison.text import cell, fenced

MOST_LOSSES = 5


def as_markdown(run: Run) -> str:
    """The verdict, the thresholds, what sets the two apart, and the worst losses."""
    lines = [
        f"## {sentences.headline(run)}",
        "",
        *(f"- {each}" for each in run.verdict.reasons),
        "",
        f"{counted(len(run.dataset.prompts), 'prompt')} of {cell(run.dataset_name)} (SHA-256 "
        f"{run.dataset.sha256[:12]}), {run.at:%Y-%m-%d %H:%M} UTC, seed {run.asking.seed}.",
        "",
        *markdown_table(run.verdict.findings),
        "",
        *(f"- {each}." for each in _findings(run)),
    ]
    return "\n".join([*lines, *_losses(run)]) + "\n"


def _findings(run: Run) -> tuple[str, ...]:
    return (
        sentences.outcomes(run),
        sentences.scores(run),
        sentences.checks(run),
        sentences.latency(run),
        sentences.lengths(run),
        sentences.spread(run),
    )


def _losses(run: Run) -> Iterable[str]:
    lost = sentences.losses(run.comparison)[:MOST_LOSSES]
    if not lost:
        return
    yield "\n### Worst losses"
    for each in lost:
        yield from _loss(each, run)


def _loss(pair: Pair, run: Run) -> Iterable[str]:
    yield f"\n**{pair.prompt.id}** ({pair.difference:+.2f}), asked:"
    yield fenced(sentences.asked(pair))
    for name, scored in ((run.candidate, pair.candidate), (run.baseline, pair.baseline)):
        missed = ", ".join(kind for kind, value in scored.checks.items() if value < 1)
        yield f"{name} (score {scored.score:.2f}{missed and ', misses '}{missed}):"
        yield fenced(scored.answer.error if scored.failed else scored.answer.text)
