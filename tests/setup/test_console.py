"""Steps that run beside others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from console import SetupError, beside, run_step


def test_both_are_done_at_the_end(tmp_path: Path) -> None:
    with beside(lambda: run_step("one", ["touch", str(tmp_path / "1")], tmp_path / "log", hint="")):
        run_step("other", ["touch", str(tmp_path / "2")], tmp_path / "other.log", hint="")
    assert {"1", "2"} <= {path.name for path in tmp_path.iterdir()}


def test_what_fails_beside_others_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(SetupError, match="wrong failed"),
        beside(lambda: run_step("wrong", ["false"], tmp_path / "log", hint="")),
    ):
        pass


def test_where_the_others_fail_its_processes_end(tmp_path: Path) -> None:
    running = tmp_path / "running"
    subprocess.run(["mkfifo", running], check=True)
    lasting = ["sh", "-c", f"sleep 600 & echo > {running}; wait"]
    with (
        pytest.raises(FileNotFoundError),
        beside(lambda: run_step("lasting", lasting, tmp_path / "log", hint="")),
    ):
        Path(running.read_text().strip() + "no-such-file").read_text()
