"""What it costs the gateway to write down what it decides, and to trace one request in a hundred of
those that bring no trace, in instructions for each request.

    python -m tests.gateway_cpp.blackbox.explain_cost [--before OTHER_GATEWAY] [--rounds 3]

valgrind counts, as for shadows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from pathlib import Path

from tests.fakes.collector import FakeCollector
from tests.fakes.gateway_process import binary
from tests.gateway_cpp.blackbox.shadow_cost import SCENARIOS, cost

OFF = ("--explain-budget-bytes", "0")
TRACED = ("--trace-sample", "0.01")


async def compare(before: Path | None, rounds: int) -> None:
    """Prints a table."""
    ours = binary()
    ways: dict[str, tuple[Path, tuple[str, ...]]] = {
        "off": (ours, OFF),
        "on": (ours, ()),
        "traced": (ours, TRACED),
    }
    if before is not None:
        ways = {"before": (before, ())} | ways
    for name, scenario in SCENARIOS.items():
        found: dict[str, list[float]] = {title: [] for title in ways}
        for _ in range(rounds):
            for title, (gateway, flags) in ways.items():
                found[title].append(await cost(gateway, scenario, [], *flags))
        base = statistics.median(next(iter(found.values())))
        for title, costs in found.items():
            middle = statistics.median(costs)
            sys.stdout.write(
                f"{name:20} {title:8} {middle:10,.0f} {middle / base:6.3f}  "
                f"{min(costs):,.0f} to {max(costs):,.0f}\n"
            )


def main() -> None:
    """As the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a gateway that writes no records")
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    with FakeCollector() as collector:
        os.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "NO_PROXY": "127.0.0.1"}
        asyncio.run(compare(told.before, told.rounds))


if __name__ == "__main__":
    main()
