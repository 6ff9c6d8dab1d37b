"""The benchmark on a real Penstock: short windows, since only the way is tested here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.processes
def test_a_quick_run_measures_the_gateway_beside_nginx(tmp_path: Path) -> None:
    words = ("bench", "--quick", "--scenario", "paced-256", "--scenario", "short-streamed")
    done = subprocess.run(
        [sys.executable, "-m", "penstock.evals.main", *words, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    paced, short = json.loads((tmp_path / "bench.json").read_text())["scenarios"]
    assert (paced["name"], short["name"]) == ("paced-256", "short-streamed")
    for target in ("gateway", "nginx"):
        figures = paced["targets"][target]["median"]
        assert figures["events_per_s"] == pytest.approx(256 * 50, rel=0.3)
        for side in ("front", "behind"):
            assert 0.1 < figures[f"{side}_us_per_event"] < 200
            assert 1 < short["targets"][target]["median"][f"{side}_us_per_answer"] < 2000
    ratio = paced["gateway_to_nginx"]["events/s"]
    assert ratio == pytest.approx(1, rel=0.3)
