"""What the docs show of flags and metrics is what the gateway itself says.

A page that differs is told as it is to be.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.architecture.metrics_reference import GATEWAY_TABLE, gateway_rows
from tests.fakes.gateway_process import ROOT, binary
from tests.gateway_cpp.blackbox.conftest import System

REFERENCE = ROOT / "docs" / "reference" / "gateway"
FAMILY = re.compile(r"# HELP (\w+) (.*)\n# TYPE \S+ (\w+)\n")


def holds(page: Path, text: str) -> None:
    """The page shows that text, to the letter."""
    assert text in page.read_text(), f"{page.name} is to have:\n{text}"


def test_the_page_of_flags_shows_the_help() -> None:
    told = subprocess.run([binary(), "--help"], capture_output=True, text=True, check=True).stdout
    holds(REFERENCE / "flags.md", f"```\n{told}```\n")


async def test_the_gateway_tells_what_it_declares_and_nothing_else(system: System) -> None:
    page = (await system.ask_status("/metrics")).body.decode()
    told = sorted(FAMILY.findall(page))
    rows = gateway_rows(GATEWAY_TABLE.read_text())
    assert told == sorted((row.name, row.help, row.type) for row in rows)
