"""A gateway that has answered a million requests holds no more memory than after the first of them
have filled what it keeps of its decisions. In a long form: `make test-long ONLY=records`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import httpx
import pytest

from penstock.evals.native import Load, NativePrograms
from penstock.evals.penstock_system import System, penstock, simulated
from penstock.evals.scoring import FRONT
from tests.fakes.gateway_process import ROOT

log = logging.getLogger(__name__)
WHOLE = 1_000_000
FIRST = 100_000
"""After these the rings of 16 MiB have been full for a while: a record has under 400 bytes."""
GROWTH = 4 << 20
"""Bytes: of allocators, that never give back all of what they take."""
WINDOW_MS = 3_000


def resident(pid: int) -> int:
    """Bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kept(system: System) -> dict[str, float]:
    """What the gateway tells of its records, by the sample's name."""
    page = httpx.get(system.metrics_url, trust_env=False).text
    lines = [line for line in page.splitlines() if line.startswith("penstock_gateway_explain_")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.long
def test_memory_is_flat_over_a_million_requests(tmp_path: Path) -> None:
    programs = NativePrograms(ROOT / "build" / "evals")
    body = tmp_path / "body.json"
    body.write_text(
        '{"model": "bench", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}'
    )
    command = [sys.executable, "-m", "penstock.control.main", "serve"]
    engine = simulated("tokens_per_second=1000000 max_running=256")
    done, sizes = 0, []
    with penstock(command, engine, tmp_path, replicas=2) as system:
        while done < WHOLE:
            report = programs.load(system.target, Load(128, 0, WINDOW_MS), body)
            done += report["answers"]
            sizes.append((done, resident(system.target.pids[FRONT])))
            log.warning("%d requests: %d KiB", done, sizes[-1][1] >> 10)
        told = kept(system)
    log.warning("%s", told)
    settled, *later = [size for count, size in sizes if count >= FIRST]
    assert len(later) > 2, "memory is looked at more than once after they are full"
    assert sizes[-1][1] < settled + GROWTH, sizes
    assert 0 < told["penstock_gateway_explain_bytes"] <= 16 << 20
