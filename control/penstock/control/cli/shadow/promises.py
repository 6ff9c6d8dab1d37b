"""What a shadow's margins can show, and when, as `penstock shadow create` says it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from penstock.control.admin.shadow.models import ShadowMadeModel
from penstock.control.errors import Unavailable

PROGRAM: Final = (sys.executable, "-m", "penstock.evals.main", "shadow-plan")
ENDLESS = 10_000_000  # pairs: as good as never


Rows = Sequence[Mapping[str, Any]]


def planned(made: ShadowMadeModel) -> Rows:
    """What margins take, where there is no comparer yet to say it: by the evals' program. Raises
    `Unavailable`."""
    words = [*PROGRAM, f"--pairs-a-day={made.pairs_a_day}", "--json"]
    words += [f"--margin={name}={margin}" for name, margin in made.margins.items()]
    words += [f"--gate={name}" for name in made.checks]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"what margins can show is not known: {done.stderr.strip()}")
    rows: Rows = json.loads(done.stdout)
    return rows


def beforehand(pairs_a_day: float, plan: Rows) -> Iterator[str]:
    """One line for each gate, from the least noise that is usual to the most."""
    if pairs_a_day:
        traffic = f"at most {pairs_a_day:,.0f} sessions a day"
        yield f"by the traffic of today and yesterday, {traffic}; sessions that each gate takes:"
    else:
        yield "its primary had no traffic today or yesterday; sessions that each gate takes:"
    for name, rows in groupby(plan, lambda row: row["name"]):
        yield _line(name, list(rows))
    yield "from little that differs by chance to much; of JSON and tools, those that ask for them"


def _line(name: str, rows: Rows) -> str:
    quiet, loud = rows[0], rows[-1]
    equal = f"equal after {_range(quiet, loud, 'equal')}"
    worse = f"worse by twice that after {_range(quiet, loud, 'worse')}"
    return f"  {name} (margin {quiet['margin']:g}): {equal}; {worse}"


def _range(quiet: Mapping[str, Any], loud: Mapping[str, Any], which: str) -> str:
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
