"""The pairs in which a candidate was worse by most, gate by gate, where their texts are kept; and
what there is to say of those that are not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from penstock.evals.comparison.page_texts import answers, shown
from penstock.evals.comparison.recorded_pair import Said
from penstock.evals.comparison.text import cell, fenced, printable

FEW: Final = 3
"""Of a gate that are shown."""
LONGEST: Final = 600
"""Characters that are shown of one text."""


@dataclass(frozen=True, slots=True)
class Worst:
    """A pair in which the candidate was worse, by a gate."""

    gate: str
    difference: float
    said: Said


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a shadow's texts."""

    pairs: int = 0
    unreadable: int = 0  # of these, under another key
    left_out: Mapping[str, int] = field(default_factory=dict)  # that count and are not kept, by why
    trouble: str = ""  # why nothing is kept now; empty: nothing is wrong
    worst: tuple[Worst, ...] = ()  # by gate, those by most first


def as_dict(kept: Kept) -> dict[str, Any]:
    """For JSON."""
    return {
        "pairs": kept.pairs,
        "unreadable": kept.unreadable,
        "left_out": dict(kept.left_out),
        "trouble": kept.trouble,
        "worst": [
            {
                "gate": each.gate,
                "difference": each.difference,
                "id": each.said.id,
                "asked": end_of(each.said.asked),
                "primary": start_of(each.said.primary),
                "candidate": start_of(each.said.candidate),
            }
            for each in kept.worst
        ],
    }


def sentences(kept: Kept) -> Iterator[str]:
    """What is kept, and what is not."""
    yield f"Texts of {kept.pairs:,} pairs are kept."
    if kept.unreadable:
        yield f"Not readable, since the key that they are under is not there: {kept.unreadable:,}."
    yield from (f"Not kept, {why}: {count:,}." for why, count in kept.left_out.items())
    if kept.trouble:
        yield f"Nothing is kept now: {kept.trouble}."


def as_markdown(kept: Kept) -> str:
    """Sentences, then each pair; texts cannot leave their blocks."""
    lines = ["", "### Worst pairs", "", *(f"- {cell(each)}" for each in sentences(kept)), ""]
    for each in kept.worst:
        lines += [f"**{each.gate}**, worse by {each.difference:.3g}: {cell(each.said.id)}", ""]
        said = each.said
        for name, text in (
            ("asked", end_of(said.asked)),
            ("primary", start_of(said.primary)),
            ("candidate", start_of(said.candidate)),
        ):
            lines += [f"{name}:", "", fenced(text), ""]
    return "\n".join(lines)


def as_html(kept: Kept) -> Iterable[str]:
    """The same as part of a page; every text is escaped."""
    yield "<h2>Worst pairs</h2>"
    yield from (f'<p class="note">{escape(printable(each))}</p>' for each in sentences(kept))
    for each in kept.worst:
        said = each.said
        primary, candidate = answers(start_of(said.primary), start_of(said.candidate), marked=True)
        yield (
            f'<section class="pair"><h3>{escape(each.gate)} <span class="note">worse by '
            f"{each.difference:.3g}, {escape(printable(said.id))}</span></h3>"
            f'<p class="asked">{shown(end_of(said.asked))}</p><div class="sides">'
            f'<div class="side"><h4 class="baseline">primary</h4>{primary}</div>'
            f'<div class="side"><h4 class="candidate">candidate</h4>{candidate}</div>'
            "</div></section>"
        )


def start_of(text: str) -> str:
    """As much of an answer as is shown."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 6]} [...]"


def end_of(text: str) -> str:
    """As much of a prompt: what is asked stands at its end."""
    return text if len(text) <= LONGEST else f"[...] {text[6 - LONGEST :]}"
