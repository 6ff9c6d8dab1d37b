"""What a shadow's margins can show, and when, as `penstock shadow create` says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from penstock.control.admin.shadow.models import ShadowReportModel

ENDLESS = 10_000_000  # pairs: as good as never


def beforehand(found: ShadowReportModel) -> Iterator[str]:
    """One line for each gate, from the least noise that is usual to the most."""
    if found.pairs_a_day:
        traffic = f"at most {found.pairs_a_day:,.0f} sessions a day"
        yield f"by the traffic of today and yesterday, {traffic}; sessions that each gate takes:"
    else:
        yield "its primary had no traffic today or yesterday; sessions that each gate takes:"
    for name, rows in groupby(found.report["plan"], lambda row: row["name"]):
        yield _line(name, list(rows))
    yield "from little that differs by chance to much; of JSON and tools, those that ask for them"


def _line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    quiet, loud = rows[0], rows[-1]
    equal = f"equal after {_range(quiet, loud, 'equal')}"
    worse = f"worse by twice that after {_range(quiet, loud, 'worse')}"
    return f"  {name} (margin {quiet['margin']:g}): {equal}; {worse}"


def _range(quiet: dict[str, Any], loud: dict[str, Any], which: str) -> str:
    days = _span(_days(quiet[f"{which}_days"]), _days(loud[f"{which}_days"]))
    told = f" ({days} days)" if days else ""
    return f"{_span(_pairs(quiet[which]), _pairs(loud[which]))}{told}"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _pairs(count: int) -> str:
    return "never" if count >= ENDLESS else f"{count:,}"


def _days(days: float | None) -> str:
    if days is None:
        return ""
    return f"{days:.1f}" if days < 100 else f"{days:,.0f}"
