"""Thresholds and how they came out, for Markdown and for the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from penstock.evals.comparison import plots
from penstock.evals.comparison.figures import as_written, between
from penstock.evals.comparison.gate import Finding, Result

_MARKS: Final = {
    Result.PASS: "pass",
    Result.FAIL: "fail",
    Result.INCONCLUSIVE: "not enough to tell",
}


def markdown_table(findings: Sequence[Finding]) -> Iterable[str]:
    """A row a threshold."""
    yield "| held to | limit | measured | for all such prompts | |"
    yield "|---|---:|---:|---|---|"
    yield from map(_markdown_row, findings)


def page_table(findings: Sequence[Finding], confidence: float) -> Iterable[str]:
    """A row a threshold, each with its plot, below what a reader has to know of these."""
    yield (
        '<p class="note">The dot is what was measured, the thick line where the figure lies for '
        f"all prompts of this kind ({confidence:.0%} sure). A threshold is met "
        "when dot and line are in the green; a line that crosses the limit asks for more "
        "prompts.</p>"
    )
    yield '<table class="thresholds"><tbody>'
    yield from map(_page_row, findings)
    yield "</tbody></table>"


def marked(result: Result) -> str:
    """A result as a mark on the page."""
    return f'<span class="mark {result}">{_MARKS[result]}</span>'


def header(result: Result, headline: str, reasons: Iterable[str]) -> Iterable[str]:
    """The page's head: the verdict, and why, unless all is well."""
    yield f'<header class="{result}"><h1>{escape(headline)}</h1>'
    if result is not Result.PASS:
        yield f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in reasons)}</ul>"
    yield "</header>"


def figure(title: str, plot: str, note: str) -> str:
    """A plot with its title and a note below, which is HTML."""
    caption = f'<figcaption class="note">{note}</figcaption>'
    return f"<h2>{escape(title)}</h2><figure>{plot}{caption}</figure>"


def _markdown_row(finding: Finding) -> str:
    limit = f"at {finding.bound} {as_written(finding.limit, finding.unit)}"
    measured, lies = "-", "-"
    if finding.found is not None:
        measured = as_written(finding.found.value, finding.unit)
        lies = between(finding.found, finding.unit) if finding.certain else "-"
    return f"| {finding.words} | {limit} | {measured} | {lies} | {finding.result.upper()} |"


def _page_row(finding: Finding) -> str:
    plot = plots.threshold(finding.found, finding.limit, finding.bound, finding.unit)
    measured = "-" if finding.found is None else as_written(finding.found.value, finding.unit)
    origin = "" if finding.declared else " (default)"
    words = finding.words[0].upper() + finding.words[1:]
    return (
        f'<tr><td>{escape(words)}<br><span class="note">{escape(finding.key)}{origin}</span></td>'
        f'<td class="figure">{measured}</td><td class="plot">{plot}</td>'
        f"<td>{marked(finding.result)}</td></tr>"
    )
