"""vLLM's own Prometheus metrics as text.

vLLM registers them with prometheus_client's one registry, where others may have theirs, too.

Imports vLLM's packages: only after `environment.prepare`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest

_PREFIX: Final = "vllm:"


class _Vllms:
    """What vLLM has registered, and nothing else."""

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client's `Collector`."""
        return (family for family in REGISTRY.collect() if family.name.startswith(_PREFIX))


def exposition() -> str:
    """All of them as text, format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Vllms())
    return generate_latest(registry).decode()
