"""Prometheus's own word on a page of metrics."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

# One package brings both, and puts them where not every PATH leads.
PROMETHEUS = shutil.which("prometheus") or "/usr/bin/prometheus"
PROMTOOL = shutil.which("promtool") or "/usr/bin/promtool"


def complaints(page: bytes) -> str:
    """What promtool finds wrong with the page; empty: nothing."""
    found = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=page,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=60,
    )
    told = found.stdout.decode(errors="replace")
    return told or (f"promtool exits with {found.returncode}" if found.returncode else "")


def samples(page: bytes) -> dict[str, float]:
    """Every sample of a page, by name and labels in order: `up{a="1",b="2"}`."""
    return dict(_samples(page.decode()))


def named(name: str, labels: Mapping[str, str]) -> str:
    """A sample by its name and labels in order."""
    told = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{told}}}" if told else name


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield named(sample.name, sample.labels), sample.value
