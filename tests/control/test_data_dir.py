"""The locks on data directories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.control.data_dir import locked
from penstock.control.errors import CannotStart, Code
from tests.fakes.control_errors import raises_code


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    path, held = tmp_path / "data" / "x.lock", "an agent already runs"
    told = rf"an agent already runs \(pid {os.getpid()}\)"
    with locked(path, held), raises_code(Code.DATA_DIR_IN_USE, match=told), locked(path, held):
        pass
    with locked(path, held):
        pass


@pytest.mark.processes
def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path;"
        "from penstock.control.data_dir import locked;"
        "lock = locked(Path(sys.argv[1]), 'it'); lock.__enter__(); print('held', flush=True);"
        "time.sleep(60)"
    )
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with raises_code(Code.DATA_DIR_IN_USE, match=f"pid {holder.pid}"), locked(path, "it"):
            pass
        holder.kill()
    with locked(path, "it"):
        pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "data" / "x.lock"
    with pytest.raises(CannotStart, match=r"file/data.*--data-dir"), locked(path, "it"):
        pass
