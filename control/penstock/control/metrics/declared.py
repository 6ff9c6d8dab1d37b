"""How a metric of the head or of a node agent is declared: once, and everything else reads it.

`head_table.py` and `node_table.py` have them all; docs/reference/metrics.md is made from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Number = float | int | bool


class MetricType(StrEnum):
    """What becomes of its values."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


_FAMILIES: Final = {
    MetricType.COUNTER: CounterMetricFamily,
    MetricType.GAUGE: GaugeMetricFamily,
}


@dataclass(frozen=True, slots=True)
class DeclaredMetric:
    """One family. No label has values that a client can make up."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    unit: str  # what a value counts
    help: str

    def one(self, value: Number) -> Metric:
        """Of one that has no labels."""
        return _FAMILIES[self.type](self.name, self.help, value=float(value))

    def each(self, values: Iterable[tuple[tuple[str, ...], Number]]) -> Metric:
        """A number for each of these values of the labels."""
        family = _FAMILIES[self.type](self.name, self.help, labels=self.labels)
        for words, value in values:
            family.add_metric([str(word) for word in words], float(value))
        return family

    def by(self, values: Mapping[str, Number]) -> Metric:
        """A number for each value of its one label."""
        return self.each(((word,), value) for word, value in values.items())

    def by_kind(self, kinds: Iterable[str], found: Iterable[str]) -> Metric:
        """How many there are of each kind, those of which there is none included."""
        counts = Counter(found)
        return self.by({kind: counts[kind] for kind in kinds})


def declared_in(table: ModuleType) -> Iterator[DeclaredMetric]:
    """All that a table has, in its order."""
    return (each for each in vars(table).values() if isinstance(each, DeclaredMetric))
