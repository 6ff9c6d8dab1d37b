"""This machine: its resources, and the locks on data directories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.control.errors import CannotStart, Code
from penstock.control.outside.machine import DirectoryLock, available_memory, read_resources
from tests.fakes.control_errors import raises_code


def test_resources_are_those_of_this_machine() -> None:
    resources = read_resources()
    assert resources.memory_bytes == psutil.virtual_memory().total
    assert 0 < resources.memory_available_bytes < resources.memory_bytes
    assert resources.cpus == os.cpu_count()


def test_available_memory_is_a_part_of_the_machines() -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < available_memory() <= pages


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "data" / "x.lock", what="an agent")
    with raises_code(Code.DATA_DIR_IN_USE, match=rf"an agent already runs .*pid {os.getpid()}\)"):
        DirectoryLock(tmp_path / "data" / "x.lock", what="an agent")
    lock.release()
    DirectoryLock(tmp_path / "data" / "x.lock", what="an agent").release()


@pytest.mark.processes
def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path;"
        "from penstock.control.outside.machine import DirectoryLock;"
        "lock = DirectoryLock(Path(sys.argv[1]), what='it'); print('held', flush=True);"
        "time.sleep(60)"
    )
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with raises_code(Code.DATA_DIR_IN_USE, match=f"pid {holder.pid}"):
            DirectoryLock(path, what="it")
        holder.kill()
    DirectoryLock(path, what="it").release()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match=r"file/data.*--data-dir"):
        DirectoryLock(tmp_path / "file" / "data" / "x.lock", what="it")
