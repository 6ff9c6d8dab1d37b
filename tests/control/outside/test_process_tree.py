"""What the kernel does so that no process is left behind, seen from a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

pytestmark = pytest.mark.processes

IMPORTS = """
import os, signal, subprocess, sys, time
from penstock.control.outside import process_tree
"""
# A grandchild whose parent dies at once; prints its pid.
ORPHAN = (
    "import subprocess, sys, os;"
    "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(c.pid, flush=True); os._exit(0)"
)
SUBREAPER = f"""{IMPORTS}
process_tree.adopt_orphans()
child = subprocess.Popen([sys.executable, '-c', {ORPHAN!r}])
child.wait()
"""


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def python(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_an_orphan_becomes_a_child_of_the_subreaper() -> None:
    with python(SUBREAPER + "print('done', flush=True); time.sleep(60)") as reaper:
        orphan = int(first_line(reaper))
        assert first_line(reaper) == "done"
        assert psutil.Process(orphan).ppid() == reaper.pid
        reaper.kill()
    os.kill(orphan, signal.SIGKILL)


def test_all_descendants_are_killed_and_buried() -> None:
    script = SUBREAPER + (
        "process_tree.kill_descendants((), seconds=5);"
        "import psutil; print(psutil.Process().children(), flush=True)"
    )
    with python(script) as reaper:
        orphan = int(first_line(reaper))
        assert first_line(reaper) == "[]"
    assert not running(orphan)


def test_dead_orphans_are_buried_and_own_children_left_to_their_owner() -> None:
    script = SUBREAPER + (
        "own = subprocess.Popen([sys.executable, '-c', 'raise SystemExit(3)'])\n"
        "os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)\n"
        "os.kill(int(sys.stdin.readline()), signal.SIGKILL)\n"
        "import psutil\n"
        "while len(psutil.Process().children()) > 1:\n"
        "    process_tree.reap_orphans((own.pid,)); time.sleep(0.01)\n"
        "print(own.wait(), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reaper:
        assert reaper.stdin is not None
        reaper.stdin.write(first_line(reaper) + "\n")
        reaper.stdin.flush()
        assert first_line(reaper) == "3"


def test_a_follower_stops_when_its_parent_is_killed() -> None:
    follower = (
        # What a shell starts in the background is started deaf to SIGINT.
        IMPORTS + "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "process_tree.stop_with_parent(os.getppid()); print(os.getpid(), flush=True);"
        "time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {follower!r}])"
    with python(parent) as process:
        pid = int(first_line(process))
        process.kill()
    until(lambda: not running(pid))


def test_a_follower_of_a_parent_that_is_gone_does_not_start() -> None:
    script = IMPORTS + (
        "from penstock.control.errors import CannotStart\n"
        "try:\n    process_tree.stop_with_parent(1 if os.getppid() != 1 else 2)\n"
        "except CannotStart as error:\n    print(error, flush=True)"
    )
    with python(script) as process:
        assert "which started this one, is gone" in first_line(process)
