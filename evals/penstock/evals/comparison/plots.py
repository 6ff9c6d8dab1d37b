"""Plots as inline SVG: texts in, texts out. Colours are the page's classes, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from penstock.evals.comparison.figures import as_written
from penstock.evals.comparison.gate import Bound
from penstock.evals.comparison.intervals import Interval
from penstock.evals.comparison.svg import WIDTH, Place, box, dot, grid, line, linear, svg, text

_LEFT: Final = 176  # where names stand
_RIGHT: Final = 24
_ROW: Final = 34
_MOST_DOTS: Final = 400
_LONGEST_NAME: Final = 22


def outcomes(counts: Mapping[str, int]) -> str:
    """One bar in parts, by class and count: how often each outcome came up."""
    total = sum(counts.values()) or 1
    parts, at = [], 0.0
    for name, count in counts.items():
        if not count:
            continue
        width = WIDTH * count / total
        parts.append(box(at, 4, width - 2, 36, name))
        if width > 14 * len(str(count)):
            parts.append(text(at + width / 2, 28, str(count), "inside"))
        at += width
    return svg(44, parts, ", ".join(f"{count} {name}" for name, count in counts.items()))


def threshold(found: Interval | None, limit: float, bound: Bound, unit: str) -> str:
    """Where a figure lies, with its interval, and the side of the limit that is allowed."""
    width, height = 260, 40
    figures = [limit] if found is None else [limit, found.low, found.high]
    place = _scale(figures, unit, 8, width - 8)
    allowed = (8.0, place(limit)) if bound is Bound.MOST else (place(limit), width - 8.0)
    parts = [
        line(8, 24, width - 8, 24, "axis"),
        box(allowed[0], 17, max(0.0, allowed[1] - allowed[0]), 14, "allowed"),
        line(place(limit), 12, place(limit), 36, "limit"),
        text(place(limit), 9, f"limit {as_written(limit, unit)}", "small", _anchor(place, limit)),
    ]
    if found is not None:
        if found.low < found.high:
            parts.append(line(place(found.low), 24, place(found.high), 24, "interval"))
        parts += [
            f'<circle class="dot" cx="{place(found.value):.1f}" cy="24" r="5"/>',
        ]
    return svg(height, parts, "", width)


def dumbbells(rows: Mapping[str, tuple[Interval, Interval]], names: tuple[str, str]) -> str:
    """For each check, how often candidate and baseline meet it."""
    place = linear(0, 1, _LEFT, WIDTH - _RIGHT)
    height = _ROW * len(rows) + 28
    parts = [grid(place, each, height, f"{each:.0%}") for each in (0, 0.25, 0.5, 0.75, 1)]
    for number, (name, (candidate, baseline)) in enumerate(rows.items()):
        y = _ROW * number + 20
        tips = [
            f"{who}: {as_written(each.value, 'share')}"
            for who, each in zip(names, (candidate, baseline), strict=True)
        ]
        parts += [
            _name(y, name),
            line(place(baseline.value), y, place(candidate.value), y, "axis"),
            dot(place(baseline.value), y, 8, "baseline", tips[1]),
            dot(place(candidate.value), y, 5, "candidate", tips[0]),
        ]
    return svg(height, parts, "share of answers that meet each check")


def differences(values: Sequence[float]) -> str:
    """Each prompt's difference of scores, sorted: bars below the line are losses."""
    ordered = sorted(values)
    top = max([abs(value) for value in ordered], default=0) or 1.0
    middle, reach = 80.0, 62.0
    step = (WIDTH - _LEFT - _RIGHT) / max(len(ordered), 1)
    parts = [
        text(_LEFT - 16, middle - reach + 4, f"+{top:.2f}", "small", "end"),
        text(_LEFT - 16, middle + 4, "tie", "small", "end"),
        text(_LEFT - 16, middle + reach + 4, f"-{top:.2f}", "small", "end"),
    ]
    for number, value in enumerate(ordered):
        size = abs(value) / top * reach
        y = middle - size if value > 0 else middle
        kind = "win" if value > 0 else "loss"
        parts.append(box(_LEFT + step * number, y, max(step - 1, 0.5), size, kind))
    parts.append(line(_LEFT, middle, WIDTH - _RIGHT, middle, "axis"))
    return svg(160, parts, "difference of scores, prompt by prompt")


def strips(rows: Mapping[str, Sequence[float]], classes: Sequence[str], unit: str) -> str:
    """For each version, a dot an answer, and a line at the half of them."""
    top = _round_up(max([value for values in rows.values() for value in values], default=1))
    place = linear(0, top, _LEFT, WIDTH - _RIGHT)
    height = 44 * len(rows) + 30
    ticks = [top * part / 4 for part in range(5)]
    parts = [grid(place, each, height, f"{each:g} {unit}") for each in ticks]
    for number, ((name, values), kind) in enumerate(zip(rows.items(), classes, strict=True)):
        y = 44 * number + 26
        ordered = sorted(values)
        shown = ordered[:: max(1, math.ceil(len(ordered) / _MOST_DOTS))]
        parts.append(_name(y, name))
        parts += [
            f'<circle class="{kind} faint" cx="{place(value):.1f}" '
            f'cy="{y + (index * 7 % 5 - 2) * 3.2:.1f}" r="3.5"/>'
            for index, value in enumerate(shown)
        ]
        if ordered:
            half = place(ordered[len(ordered) // 2])
            parts.append(line(half, y - 16, half, y + 16, "half"))
    return svg(height, parts, f"{unit} of each answer")


def _name(y: float, name: str) -> str:
    cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
    return text(_LEFT - 16, y + 4, cut, "name", "end")


def _scale(figures: Sequence[float], unit: str, left: float, right: float) -> Place:
    if unit == "share" and min(figures) >= 0:
        return linear(0, 1, left, right)
    if unit == "times":
        return linear(0, max([2.0, *figures]) * 1.1, left, right)
    reach = max(abs(figure) for figure in figures) * 1.1 or 1.0
    return linear(-reach if min(figures) < 0 else 0, reach, left, right)


def _anchor(place: Place, value: float) -> str:
    x = place(value)
    return "start" if x < 50 else "end" if x > 210 else "middle"


def _round_up(value: float) -> float:
    if value <= 0:
        return 1.0
    size = 10 ** math.floor(math.log10(value))
    return float(next(step * size for step in (1, 2, 4, 8, 10) if step * size >= value))
