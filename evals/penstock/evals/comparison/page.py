"""A report as one HTML page that needs nothing else and runs nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from penstock.evals.comparison.betting import Verdict
from penstock.evals.comparison.page_shell import whole_page
from penstock.evals.comparison.report import Finding, Report, headline, summary, told, written
from penstock.evals.comparison.svg import box, line, linear, path, svg, text
from penstock.evals.comparison.worst import as_html

_WIDTH, _HEIGHT = 240, 84
_FLOOR = 64  # of the plots; what stands below are words
_KINDS = {
    Verdict.EQUAL: "pass",
    Verdict.BETTER: "pass",
    Verdict.WORSE: "fail",
    Verdict.UNDECIDED: "inconclusive",
}


def as_page(report: Report) -> str:
    """The whole page."""
    reasons = "".join(f"<li>{escape(each)}</li>" for each in report.reasons)
    body = [
        f'<header class="{_KINDS[report.verdict]}"><h1>{escape(headline(report))}</h1>',
        f"<ul>{reasons}</ul></header>",
        *(f'<p class="note">{escape(each)}</p>' for each in summary(report)),
        "<h2>Gates</h2>",
        '<p class="note">First plot: how often each difference came, red where the candidate is '
        "worse; the stroke is the margin. Second: how far the bets on worse (red) and on equal "
        "(green) have come to the black line, above which they decide.</p>",
        *_rows([each for each in report.findings if each.check.gate]),
        "<h2>Shown</h2>",
        *_rows([each for each in report.findings if not each.check.gate]),
        *(as_html(report.kept) if report.kept else ()),
    ]
    return whole_page(headline(report), "\n".join(body))


def distribution(finding: Finding) -> str:
    """How often each difference came; the tallest is cut where one dwarfs all others."""
    place = linear(-1, 1, 8, _WIDTH - 8)
    middle = len(finding.histogram) // 2
    most = max(sorted(finding.histogram)[-2:][0] * 2, 1)
    width = (_WIDTH - 16) / max(len(finding.histogram), 1)
    parts = [line(8, _FLOOR, _WIDTH - 8, _FLOOR, "grid")]
    for number, count in enumerate(finding.histogram):
        size = min(count / most, 1.0) * (_FLOOR - 12)
        kind = "tie" if number == middle else "loss" if number > middle else "win"
        if count:
            parts.append(box(8 + number * width, _FLOOR - size, width - 1, max(size, 2), kind))
    parts.append(line(place(finding.check.margin), 4, place(finding.check.margin), _FLOOR, "axis"))
    parts.append(text(8, _HEIGHT - 6, "better", "small", "start"))
    parts.append(text(_WIDTH - 8, _HEIGHT - 6, "worse", "small", "end"))
    return svg(_HEIGHT, parts, f"differences of {finding.check.name}", _WIDTH)


def course(finding: Finding) -> str:
    """How the bets went, session by session."""
    last = finding.path[-1][0] if finding.path else 1
    across, up = linear(0, last, 8, _WIDTH - 8), linear(-0.5, 1.5, _FLOOR, 4)
    parts = [line(8, up(1), _WIDTH - 8, up(1), "limit"), line(8, up(0), _WIDTH - 8, up(0), "grid")]
    for number, kind in ((1, "loss"), (2, "win")):
        parts.append(path([(across(each[0]), up(each[number])) for each in finding.path], kind))
    parts.append(text(_WIDTH - 8, _HEIGHT - 6, f"{last:,} sessions", "small", "end"))
    return svg(_HEIGHT, parts, f"the course of {finding.check.name}", _WIDTH)


def _rows(findings: Iterable[Finding]) -> Iterable[str]:
    yield '<div class="findings">'
    for each in findings:
        check, kind = each.check, _KINDS[each.verdict] if each.made else "tie"
        verdict, _, more = told(each).partition(": ")
        seen = "-" if each.difference is None else written(each.difference, check.unit)
        plots = f"{distribution(each)}{course(each)}" if each.made else ""
        yield (
            f'<section><div class="name">{escape(check.name)}<div class="note">'
            f"{escape(check.words)}, margin {written(check.margin, check.unit)}</div></div>"
            f'<div class="figure">{seen}<div class="note">{each.pairs:,} pairs</div></div>'
            f'<div class="plots">{plots}</div>'
            f'<div><span class="mark {kind}">{escape(verdict)}</span>'
            f'<div class="note">{escape(more)}</div></div></section>'
        )
    yield "</div>"
