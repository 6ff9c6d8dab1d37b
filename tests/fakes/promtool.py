"""Prometheus's own word on a page of metrics."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

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


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            yield (f"{sample.name}{{{labels}}}" if labels else sample.name), sample.value
