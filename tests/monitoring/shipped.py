"""What dashboards and rules ask for, and what there is to be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.monitoring.grafana import EVERY_VALUE, RATE, Board

ROOT: Final = Path(__file__).resolve().parents[2]
RULES: Final = ROOT / "deploy" / "monitoring" / "rules"
METRICS: Final = ROOT / "docs" / "reference" / "metrics.md"
PROMETHEUSS_OWN: Final = frozenset({"up", "ALERTS"})

_ROW: Final = re.compile(r"^\| `([a-z_:]+)` \| (\w+) \|", re.MULTILINE)
_METRIC: Final = re.compile(r"\b(?:penstock|gen_ai|vllm)[a-z0-9_:]+|\bup\b|\bALERTS\b")
_STRINGS: Final = re.compile(r'"[^"]*"')


def rules_in(*files: Path) -> Iterator[dict[str, Any]]:
    """Every rule."""
    for file in files:
        for group in yaml.safe_load(file.read_text())["groups"]:
            yield from group["rules"]


def recorded(*files: Path) -> set[str]:
    """Names of what rules record."""
    return {rule["record"] for rule in rules_in(*files) if "record" in rule}


def declared() -> set[str]:
    """Names of samples, as the page of all metrics has them."""
    found = set(PROMETHEUSS_OWN)
    for name, kind in _ROW.findall(METRICS.read_text()):
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        found |= {name + suffix for suffix in suffixes}
    return found


def names_in(expr: str) -> set[str]:
    """The metrics that a query names; what stands in quotes is no name."""
    return set(_METRIC.findall(_STRINGS.sub('""', expr)))


def asked_of_all(board: Board, window: str = "1m") -> Iterator[str]:
    """Each query of the board as Grafana sends it where all is chosen, over so long."""
    for panel in (panel for row in board.rows for panel in row.panels):
        for expr in (query.expr for query in panel.queries):
            for variable in board.variables:
                expr = expr.replace(f"${variable.name}", EVERY_VALUE)
            yield expr.replace(RATE, window)
    yield from (variable.metric for variable in board.variables)
