"""A run as Markdown: what stands in a change's discussion. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.evals.comparison.gate_report import markdown_table
from penstock.evals.comparison.text import cell, fenced
from penstock.evals.quantization_regression import sentences
from penstock.evals.quantization_regression.document import Run
from penstock.evals.quantization_regression.verdict import Slice

MOST_WORST = 5


def as_markdown(run: Run) -> str:
    """The verdict, each slice's thresholds, and the worst prompts."""
    lines = [
        f"## {cell(run.headline)}",
        "",
        *(f"- {cell(each)}" for each in run.outcome.reasons),
        "",
        cell(sentences.facts(run)),
    ]
    for each in run.outcome.slices:
        lines += _slice(each)
    return "\n".join([*lines, *_worst(run)]) + "\n"


def _slice(part: Slice) -> Iterable[str]:
    yield f"\n### {part.name}: {part.verdict.result}"
    yield ""
    yield from (f"- {each}" for each in sentences.of_slice(part))
    yield ""
    yield from markdown_table(part.verdict.findings)


def _worst(run: Run) -> Iterable[str]:
    found = sentences.worst(run, MOST_WORST)
    if not found:
        return
    yield "\n### Worst prompts"
    for line, pair in found:
        yield f"\n**{sentences.title(line, pair)}**, asked:"
        yield fenced(line.question.messages[-1]["content"])
        for name, answer in (("primary", pair.primary), ("candidate", pair.candidate)):
            yield f"{name}:"
            yield fenced(answer.error if answer.failed else answer.text)
