"""Shorthands for families of metrics that are made anew for each page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Family = type[GaugeMetricFamily] | type[CounterMetricFamily]
Number = float | int | bool


def gauge(name: str, help: str, value: Number) -> Metric:
    """One number."""
    return GaugeMetricFamily(name, help, value=float(value))


def by_label(name: str, help: str, label: str, values: Mapping[str, Number]) -> Metric:
    """A number for each value of a label."""
    return labelled(GaugeMetricFamily, name, help, (label,), (((k,), v) for k, v in values.items()))


def by_kind(name: str, help: str, label: str, kinds: Iterable[str], found: Iterable[str]) -> Metric:
    """How many there are of each kind, those of which there is none included."""
    counts = Counter(found)
    return by_label(name, help, label, {kind: counts[kind] for kind in kinds})


def by_deployment(kind: Family, name: str, help: str, values: Mapping[str, Number]) -> Metric:
    """A number for each deployment."""
    return labelled(kind, name, help, ("deployment",), (((k,), v) for k, v in values.items()))


def labelled(
    kind: Family,
    name: str,
    help: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], Number]],
) -> Metric:
    """A number for each of these values of the labels."""
    family = kind(name, help, labels=labels)
    for words, value in values:
        family.add_metric([str(word) for word in words], float(value))
    return family
