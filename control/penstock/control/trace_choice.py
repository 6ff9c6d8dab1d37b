"""Which requests a gateway traces, as head and `penstock serve` are told and pass it on."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.errors import invalid_setting

MOST_MS = 86_400_000  # a day, as the gateway takes it


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """Which requests a gateway sends to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names."""

    sample: float = 0.0  # of those that bring no trace of their own, 0 to 1
    slow_ms: int = 0  # all that take so long; 0: none

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= 1:
            raise invalid_setting(f"--trace-sample is {self.sample:g}: it must be 0 to 1")
        if not 0 <= self.slow_ms <= MOST_MS:
            raise invalid_setting(f"--trace-slow-ms is {self.slow_ms}: it must be 0 to {MOST_MS:,}")

    @property
    def flags(self) -> list[str]:
        """As a gateway, a head and its parent take them."""
        sample = ["--trace-sample", f"{self.sample:g}"] if self.sample else []
        return sample + (["--trace-slow-ms", str(self.slow_ms)] if self.slow_ms else [])


TRACES = TraceChoice()
