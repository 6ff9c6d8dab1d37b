"""A data directory that takes nothing, or is gone, ends nothing that serves.

What dies meanwhile comes back as far as it can, and all of it once there is a directory again.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.system import System, eventually, get_json

pytestmark = pytest.mark.processes

SIMULATED = ("--engine", "simulated", "--engine-args", "ttft_ms=0 tokens_per_second=0")
APART = ("unshare", "--map-root-user", "--mount")


class SystemApart(System):
    """In a mount namespace of its own, where its data directory can be made read-only."""

    within = APART

    def mount(self, *words: str) -> None:
        """Changes what its processes see from now on; what is open stays so."""
        enter = ["nsenter", f"--target={self.process.pid}", "--mount", "--user"]
        subprocess.run([*enter, "--preserve-credentials", *words], check=True)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[SystemApart]:
    tried = subprocess.run([*APART, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
    system = SystemApart(tmp_path, *SIMULATED)
    try:
        system.wait_ready()
        yield system
        system.stop()
    finally:
        system.destroy()


def kill(system: System, pid: int, found: Callable[[], Any], what: str) -> None:
    """Kills a process and waits for another one in its place."""
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: found() not in (None, pid), within=60, what=f"another {what}")
    eventually(lambda: answers(system), within=60, what=f"an answer after the {what} died")


def answers(system: System) -> bool:
    return bool(get_json(system.base_url + "/models")["data"]) and system.process.poll() is None


def replica(system: System) -> int | None:
    return next((int(each["pid"]) for each in system.replicas()), None)


def gateway(system: System) -> int | None:
    return next((int(each["pid"]) for each in system.admin("gateways") if each["pid"]), None)


def child(system: System, role: str) -> int | None:
    found = [it.pid for it in system.processes(f"penstock.control.main {role} ")]
    return found[0] if found and replica(system) else None


def kill_each(system: System) -> None:
    for what, look in (("replica", replica), ("gateway", gateway)):
        find = partial(look, system)
        kill(system, eventually(find, within=60, what=what) or 0, find, what)
    for role in ("node", "head"):
        find = partial(child, system, role)
        kill(system, eventually(find, within=60, what=role) or 0, find, role)


def test_what_dies_on_a_read_only_data_directory_comes_back(system: SystemApart) -> None:
    data = str(system.data)
    system.mount("mount", "--bind", data, data)
    system.mount("mount", "-o", "remount,bind,ro", data)
    kill_each(system)
    told = system.log.read_text()
    assert "head.log cannot be written, output is dropped: Read-only file system" in told
    system.mount("umount", "--lazy", data)
    eventually(partial(replica, system), within=60, what="the replica")


def test_what_dies_where_no_log_can_be_written_comes_back(system: SystemApart) -> None:
    (system.data / "logs").rename(system.data / "were-logs")
    (system.data / "logs").touch()
    kill_each(system)


def test_a_data_directory_that_vanishes_ends_nothing_and_all_is_well_once_it_is_back(
    system: SystemApart,
) -> None:
    elsewhere = system.data.with_name("elsewhere")
    pids = (replica(system), system.pid_of("node"))
    system.data.rename(elsewhere)
    for pid in pids:
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: "the node agent " in system.log.read_text(), within=60, what="its end is told"
    )
    assert answers(system)
    for made in system.data.rglob("*") if system.data.exists() else ():
        if made.is_file():
            made.unlink()
    if system.data.exists():
        system.data.rename(elsewhere.with_name("made-meanwhile"))
    elsewhere.rename(system.data)
    eventually(lambda: replica(system), within=60, what="the replica is back")
    assert answers(system)
