"""What set-up builds, and with what."""

from __future__ import annotations

import subprocess
from pathlib import Path

from places import ROOT


def test_the_benchmarks_programs_are_configured_without_googletest(tmp_path: Path) -> None:
    done = subprocess.run(
        ["cmake", "-S", "evals/native", "-B", tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=TRUE"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
