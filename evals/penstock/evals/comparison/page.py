"""A report as one HTML page that needs nothing else and runs nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from penstock.evals.comparison.betting import Verdict
from penstock.evals.comparison.page_shell import whole_page
from penstock.evals.comparison.report import Finding, Report, headline, summary, told, written
from penstock.evals.comparison.svg import box, line, linear, path, svg, text

_WIDTH, _HEIGHT = 260, 64
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
        '<p class="note">Left: how often each difference came, right of the middle where the '
        "candidate is worse; the strokes are no difference and the margin. Right: how far the bets "
        "on worse (red) and on equal (green) have come to the line above which they decide.</p>",
        *_table([each for each in report.findings if each.check.gate]),
        "<h2>Shown</h2>",
        *_table([each for each in report.findings if not each.check.gate]),
    ]
    return whole_page(headline(report), "\n".join(body))


def distribution(finding: Finding) -> str:
    """How often each difference came; the tallest is cut where one dwarfs all others."""
    place = linear(-1, 1, 8, _WIDTH - 8)
    most = max(sorted(finding.histogram)[-2:][0] * 2, 1)
    width = (_WIDTH - 16) / max(len(finding.histogram), 1)
    parts = []
    for number, count in enumerate(finding.histogram):
        size = min(count / most, 1.0) * (_HEIGHT - 12)
        kind = "tie" if number == len(finding.histogram) // 2 else "loss" if number > 10 else "win"
        if count:
            parts.append(box(8 + number * width, _HEIGHT - size, width - 1, max(size, 1.5), kind))
    parts += [
        line(place(each), 4, place(each), _HEIGHT, "axis") for each in (0, finding.check.margin)
    ]
    return svg(_HEIGHT, parts, f"differences of {finding.check.name}", _WIDTH)


def course(finding: Finding) -> str:
    """How the bets went, session by session."""
    last = finding.path[-1][0] if finding.path else 1
    across, up = linear(0, last, 8, _WIDTH - 8), linear(-0.5, 1.5, _HEIGHT, 4)
    parts = [line(8, up(1), _WIDTH - 8, up(1), "limit"), line(8, up(0), _WIDTH - 8, up(0), "grid")]
    parts.append(text(_WIDTH - 8, _HEIGHT - 2, f"{last:,} sessions", "small", "end"))
    for number, kind in ((1, "loss"), (2, "win")):
        parts.append(path([(across(each[0]), up(each[number])) for each in finding.path], kind))
    return svg(_HEIGHT, parts, f"the course of {finding.check.name}", _WIDTH)


def _table(findings: Iterable[Finding]) -> Iterable[str]:
    yield '<table class="thresholds"><tbody>'
    for each in findings:
        check, kind = each.check, _KINDS[each.verdict] if each.made else "tie"
        seen = "-" if each.difference is None else written(each.difference, check.unit)
        plots = (distribution(each), course(each)) if each.made else ("", "")
        yield (
            f"<tr><td>{escape(check.name)}<div class=note>{escape(check.words)}, margin "
            f"{written(check.margin, check.unit)}</div></td>"
            f'<td class="figure">{seen}<div class=note>{each.pairs:,} pairs</div></td>'
            f'<td class="plot">{plots[0]}</td><td class="plot">{plots[1]}</td>'
            f'<td><span class="mark {kind}">{escape(told(each))}</span></td></tr>'
        )
    yield "</tbody></table>"


__all__ = ["as_page", "course", "distribution"]
