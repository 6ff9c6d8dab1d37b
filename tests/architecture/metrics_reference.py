"""docs/reference/metrics.md, made from where metrics are declared:

.venv/bin/python -m tests.architecture.metrics_reference
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.control.metrics import head_table, node_table
from penstock.control.metrics.declared import declared_in
from penstock.replica.reporting import metric_table as replica_table
from tests.architecture.engine_metrics import ENGINE_METRICS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "metrics.md"
GATEWAY_TABLE: Final = ROOT / "gateway_cpp" / "src" / "base" / "metric_table.h"
TABLES: Final = "\n## Of the gateway\n"
"""Where the made part of the page begins."""
_ROW: Final = re.compile(r"inline constexpr Metric k\w+\{(.*?)\};")
_TEXTS: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Row:
    """One family."""

    name: str
    type: str
    labels: tuple[str, ...]
    unit: str
    help: str

    @property
    def line(self) -> str:
        """Its line of the page."""
        labels = ", ".join(f"`{label}`" for label in self.labels)
        said = self.help.replace("|", r"\|")
        return f"| `{self.name}` | {self.type} | {labels} | {self.unit} | {said} |\n"


def gateway_rows(text: str) -> Iterator[Row]:
    """What the gateway's table declares, by its source."""
    flowing = re.sub(r'"\s+"', "", " ".join(text.split()))
    for row in _ROW.findall(flowing):
        name, labels, unit, said = _TEXTS.findall(row)
        kind = re.search(r"\bk(Counter|Gauge|Histogram)\b", row)
        assert kind, row
        yield Row(name, kind[1].lower(), tuple(filter(None, labels.split(", "))), unit, said)


def head_rows() -> Iterator[Row]:
    """What the head declares."""
    return (Row(m.name, m.type, m.labels, m.unit, m.help) for m in declared_in(head_table))


def node_rows() -> Iterator[Row]:
    """What a node agent declares."""
    return (Row(m.name, m.type, m.labels, m.unit, m.help) for m in declared_in(node_table))


def replica_metrics() -> Iterator[replica_table.Metric]:
    """All that its table has, in its order."""
    for each in vars(replica_table).values():
        several = each.values() if isinstance(each, dict) else (each,)
        yield from (one for one in several if isinstance(one, replica_table.Metric))


def replica_rows() -> Iterator[Row]:
    """What a replica declares, with the labels that its agent adds."""
    own = node_table.OF_REPLICA
    return (Row(m.name, m.type, (*own, *m.labels), m.unit, m.help) for m in replica_metrics())


def engine_rows() -> Iterator[str]:
    """What is used of vLLM's own."""
    for each in ENGINE_METRICS:
        labels = ", ".join(f"`{label}`" for label in (*node_table.OF_REPLICA, *each.labels))
        yield f"| `{each.name}` | {each.type} | {labels} | {each.use} |\n"


def page_of(page: str) -> str:
    """The page with its tables as they are to be: all from the first on."""
    before, _, _ = page.partition(TABLES)
    return before + "".join(_tables())


def _tables() -> Iterator[str]:
    head = "| name | type | labels | counts | says |\n|---|---|---|---|---|\n"
    gateway = gateway_rows(GATEWAY_TABLE.read_text())
    parts: tuple[tuple[str, Iterable[Row]], ...] = (
        (TABLES, gateway),
        ("\n## Of the head\n", head_rows()),
        ("\n## Of a node agent\n", node_rows()),
        ("\n## Of replicas, by way of their agent\n", replica_rows()),
    )
    for title, rows in parts:
        yield title + "\n" + head
        yield from (row.line for row in rows)
    yield "\n## Of vLLM, by way of its replica\n\n| name | type | labels | looked at for |\n"
    yield "|---|---|---|---|\n"
    yield from engine_rows()


if __name__ == "__main__":
    PAGE.write_text(page_of(PAGE.read_text()))
