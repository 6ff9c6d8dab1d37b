"""Pictures as inline SVG: figures in, texts out. Colours are the page's classes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

WIDTH: Final = 720

Place = Callable[[float], float]


def svg(height: float, parts: Sequence[str], told: str, width: int = WIDTH) -> str:
    """A whole picture, with what it tells those who do not see it."""
    label = f'role="img" aria-label="{escape(told)}"' if told else 'aria-hidden="true"'
    return (
        f'<svg viewBox="0 0 {width} {height:g}" width="{width}" {label}>'
        + "".join(parts)
        + "</svg>"
    )


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A box."""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {size}/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def dot(x: float, y: float, radius: float, kind: str, tip: str) -> str:
    """A dot that says something where one points at it."""
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
    return f'<circle class="{kind}" {place}><title>{escape(tip)}</title></circle>'


def text(x: float, y: float, words: str, kind: str, anchor: str = "middle") -> str:
    """A text."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def grid(place: Place, value: float, height: float, words: str) -> str:
    """A line of the scale, with its words below."""
    x = place(value)
    return line(x, 4, x, height - 20, "grid") + text(x, height - 5, words, "small")


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{through}"/>'


def linear(low: float, high: float, left: float, right: float) -> Place:
    """Where figures from `low` to `high` lie; others lie at the nearer end."""
    span = high - low or 1.0
    return lambda value: left + (min(max(value, low), high) - low) / span * (right - left)
