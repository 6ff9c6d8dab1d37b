"""A run as one HTML page that needs nothing else and runs nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from penstock.evals.comparison import plots
from penstock.evals.comparison.checks.scores import perplexity_of
from penstock.evals.comparison.figures import as_written, between
from penstock.evals.comparison.gate_report import figure, header, marked, page_table
from penstock.evals.comparison.page_shell import whole_page
from penstock.evals.comparison.page_texts import answers, asked, shown
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.quantization_regression import sentences
from penstock.evals.quantization_regression.document import Run
from penstock.evals.quantization_regression.thresholds import LIMITS
from penstock.evals.quantization_regression.verdict import Slice, harm
from penstock.evals.shadow_compare.asking import Line

MOST_WORST: Final = 10
_KEYS: Final = (
    '<span class="key candidate"></span>candidate <span class="key baseline"></span>primary'
)


def as_page(run: Run) -> str:
    """The whole page."""
    body = [
        *header(run.outcome.result, run.headline, run.outcome.reasons),
        f'<p class="facts">{escape(sentences.facts(run))}</p>',
        *_overview(run),
    ]
    for each in run.outcome.slices:
        body += _slice(each, run.held.of(each.name).confidence)
    return whole_page(run.headline, "\n".join([*body, *_worst(run), *_how()]))


def _overview(run: Run) -> Iterable[str]:
    yield "<h2>Slices</h2><table><tbody>"
    for each in run.outcome.slices:
        told = escape(" ".join(sentences.of_slice(each)))
        yield (
            f"<tr><th>{escape(each.name)}</th><td>{told}</td>"
            f"<td>{marked(each.verdict.result)}</td></tr>"
        )
    yield "</tbody></table>"


def _slice(part: Slice, confidence: float) -> Iterable[str]:
    yield f"<h2>{escape(part.name)}: what it was held to</h2>"
    yield from page_table(part.verdict.findings, confidence)
    scored = [each for each in part.pairs if each.primary.logprobs]
    if scored:
        yield figure(
            f"{part.name}: how likely each finds the primary's texts",
            plots.strips(
                {
                    "candidate": _perplexities(each.candidate for each in scored),
                    "primary": _perplexities(each.primary for each in scored),
                },
                ("candidate", "baseline"),
                "",
            ),
            f"Perplexity; a dot is a text, the line their median. {_KEYS}",
        )
        yield figure(
            f"{part.name}: text by text",
            plots.differences([-(harm(each) or 0.0) for each in scored]),
            "A bar a text, sorted: down, the candidate finds it less likely than the primary does; "
            "in octaves of perplexity (-1: twice as high).",
        )
    yield from _shown(part)


def _perplexities(answers_of: Iterable[Answer]) -> list[float]:
    return [found for each in answers_of if (found := perplexity_of(each.logprobs)) is not None]


def _shown(part: Slice) -> Iterable[str]:
    held = {each.key for each in part.verdict.findings}
    yield f"<details><summary>{escape(part.name)}: what else was measured</summary><table><tbody>"
    for limit in LIMITS:
        if limit.key not in held and (found := part.figures.get(limit.check)):
            yield (
                f"<tr><td>{escape(limit.words)}</td><td>{as_written(found.value, limit.unit)}</td>"
                f"<td>{between(found, limit.unit)}</td><td>{found.count:,} prompts</td></tr>"
            )
    yield "</tbody></table></details>"


def _worst(run: Run) -> Iterable[str]:
    found = sentences.worst(run, MOST_WORST)
    if found:
        yield "<h2>Worst prompts</h2>"
        yield '<p class="note">Marked is what the other answer does not have.</p>'
    for line, pair in found:
        yield from _side_by_side(line, pair)


def _side_by_side(line: Line, pair: Pair) -> Iterable[str]:
    whole = not (pair.primary.failed or pair.candidate.failed)
    old, new = answers(pair.primary.text, pair.candidate.text, marked=whole)
    yield f'<section class="pair"><h3>{escape(sentences.title(line, pair))}</h3>'
    yield from asked(line.question.messages)
    yield '<div class="sides">'
    yield _side("candidate", "candidate", pair.candidate, new)
    yield _side("primary", "baseline", pair.primary, old)
    yield "</div></section>"


def _side(name: str, kind: str, answer: Answer, text: str) -> str:
    body = f'<p class="error">no answer: {shown(answer.error)}</p>' if answer.failed else text
    return f'<div class="side"><h4 class="{kind}">{name}</h4>{body}</div>'


def _how() -> Iterable[str]:
    yield (
        '<p class="note">Both were asked each prompt, and the primary again, as a control: what a '
        "model differs from itself by is no difference, and times are compared with those of the "
        "primary asked again. Then both scored the primary's answers, token by token. Intervals "
        "are a bootstrap, whose ends also count one prompt that nobody asked, at its worst and at "
        "its best. Of a session its first prompt counts.</p>"
    )
