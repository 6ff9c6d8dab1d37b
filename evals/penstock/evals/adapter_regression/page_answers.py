"""The page's answers: losses side by side, then all prompts. Pure.

Whatever a model or a dataset said passes through `page_texts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from penstock.evals.adapter_regression import sentences
from penstock.evals.adapter_regression.comparison import Outcome, Pair
from penstock.evals.adapter_regression.document import Run
from penstock.evals.adapter_regression.scores import Scored
from penstock.evals.comparison.figures import counted
from penstock.evals.comparison.page_texts import answers, asked, shown

MOST_LOSSES: Final = 10
MOST_PROMPTS: Final = 300

_TITLES: Final = {
    Outcome.WIN: "Won",
    Outcome.LOSS: "Lost",
    Outcome.TIE: "Tied",
    Outcome.NOT_COMPARED: "Not compared",
}
_MARKS: Final = {True: ("met", "\u2713"), False: ("missed", "\u2717")}


def losses(run: Run) -> Iterable[str]:
    """The prompts that the candidate lost, the worst first."""
    lost = sentences.losses(run.comparison)
    if not lost:
        yield "<h2>No prompt was lost</h2>"
        return
    worst = lost[:MOST_LOSSES]
    rest = f", the worst {len(worst)} of them here" if len(lost) > len(worst) else ""
    yield f"<h2>{counted(len(lost), 'prompt').capitalize()} lost{rest}</h2>"
    yield (
        '<p class="note">Marked is what the other answer does not have. Below each answer: its '
        "checks.</p>"
    )
    for each in worst:
        yield from _side_by_side(each, run)


def others(run: Run) -> Iterable[str]:
    """All prompts, folded away."""
    pairs = run.comparison.pairs[:MOST_PROMPTS]
    left = len(run.comparison.pairs) - len(pairs)
    yield f"<h2>All {counted(len(run.comparison.pairs), 'prompt')}, as they were asked</h2>"
    for outcome in (Outcome.WIN, Outcome.LOSS, Outcome.TIE, Outcome.NOT_COMPARED):
        chosen = [each for each in pairs if each.outcome is outcome]
        if chosen:
            yield from _folded(f"{_TITLES[outcome]}: {counted(len(chosen), 'prompt')}", chosen, run)
    if left:
        yield f'<p class="note">{counted(left, "prompt")} more stand in report.json.</p>'


def _folded(title: str, pairs: Sequence[Pair], run: Run) -> Iterable[str]:
    yield f"<details><summary>{title}</summary>"
    for each in pairs:
        yield from _side_by_side(each, run)
    yield "</details>"


def _side_by_side(pair: Pair, run: Run) -> Iterable[str]:
    old, new = _marked(pair.baseline, pair.candidate)
    yield '<section class="pair">'
    yield (
        f'<h3><span class="mark {_outcome_class(pair)}">{pair.outcome}</span> '
        f"{escape(pair.prompt.id)}</h3>"
    )
    yield from asked(pair.prompt.messages)
    if pair.prompt.references:
        texts = " <i>or</i> ".join(shown(each) for each in pair.prompt.references)
        yield f'<p class="reference"><span class="note">Reference:</span> {texts}</p>'
    yield '<div class="sides">'
    yield _side(str(run.candidate), "candidate", pair.candidate, new)
    yield _side(str(run.baseline), "baseline", pair.baseline, old)
    yield "</div></section>"


def _side(name: str, kind: str, scored: Scored, text: str) -> str:
    answer = scored.answer
    facts = [f"score {scored.score:.2f}", f"{answer.latency_ms:,.0f} ms"]
    facts += ["cut off at max_tokens"] if answer.finish_reason == "length" else []
    facts += ["refuses"] if scored.refused else []
    checks = " ".join(_check(name, value) for name, value in scored.checks.items())
    body = f'<p class="error">no answer: {shown(answer.error)}</p>' if scored.failed else text
    title = f'{escape(name)} <span class="note">{", ".join(facts)}</span>'
    return (
        f'<div class="side"><h4 class="{kind}">{title}</h4>{body}'
        f'<p class="checks">{checks}</p></div>'
    )


def _check(name: str, value: float) -> str:
    kind, mark = _MARKS[value >= 1]
    told = mark if value in (0, 1) else f"{value:.2f}"
    kind = kind if value in (0, 1) else "part"
    return f'<span class="{kind}">{told} {sentences.LABELS[name]}</span>'


def _marked(baseline: Scored, candidate: Scored) -> tuple[str, str]:
    old, new = baseline.answer.text, candidate.answer.text
    return answers(old, new, marked=not (baseline.failed or candidate.failed))


def _outcome_class(pair: Pair) -> str:
    return "uncompared" if pair.outcome is Outcome.NOT_COMPARED else str(pair.outcome)
